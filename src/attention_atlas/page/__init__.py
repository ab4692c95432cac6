"""What does the page show, and where does it get it from?"""
