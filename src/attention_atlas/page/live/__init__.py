"""What can a page have done: maps computed, texts added by a live model?"""
