"""The browser: from a file to a signed release on a page of this machine, or of a server for a team."""
