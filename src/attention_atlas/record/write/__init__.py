"""How do recorded attention calls become an atlas folder?"""
