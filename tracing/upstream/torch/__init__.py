"""Objects of torch outside of Inductor that are not public API, a file for each subject."""
