"""A comparison as a page, a table, a spreadsheet."""
