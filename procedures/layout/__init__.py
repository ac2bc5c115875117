"""Where rows go: revisions, trees, the order of the rows, the files, and their tags."""
