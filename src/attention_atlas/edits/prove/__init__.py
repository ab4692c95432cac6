"""Is an edit of the model at hand the one that was asked for?"""
