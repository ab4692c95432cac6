"""Is what was seen what the model computed?"""
