"""Replies as models write them: the truth is drawn first and worded afterwards, so no reader is its judge."""
