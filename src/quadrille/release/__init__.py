"""From a recipe to a public and a confidential folder, under an agency's policy."""
