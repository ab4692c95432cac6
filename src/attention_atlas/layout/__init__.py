"""Where do the queries and keys of every head lie on a map?"""
