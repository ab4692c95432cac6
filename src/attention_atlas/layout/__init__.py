"""Step 3 of the flow: where do the queries and keys of every head lie on a map?"""
