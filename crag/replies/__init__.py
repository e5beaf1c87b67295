"""What models write, turned into values. What is not clearly a value is unread, never guessed."""
