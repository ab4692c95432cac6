"""Where does work run? A job is data; an engine runs jobs and gives back their results."""
