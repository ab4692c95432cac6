"""How does what was seen become an atlas folder?"""
