"""Plans and second files against measures: scores, by area too, and estimates before and after."""
