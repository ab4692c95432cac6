"""How are single heads trained, while all else stays as it is?"""
