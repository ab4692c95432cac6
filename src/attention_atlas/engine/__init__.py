"""Where does work run? A job is data; an engine runs jobs and returns their results."""
