"""Property tests draw the same examples at every run, and a busy machine does not fail them."""

import hypothesis

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")
