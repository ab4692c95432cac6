"""How does attention of other tools become an atlas, and an atlas their files?"""
