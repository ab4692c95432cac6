"""What is the answer to each request of the page?"""
