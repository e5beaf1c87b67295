"""Answers for other programs: OpenAI's API, an API of our own, and a tool by the Model Context Protocol."""
