"""How much does the loss change when a head moves something else?"""
