"""Which heads make the difference between two inputs?"""
