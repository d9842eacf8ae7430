"""The evaluation study of Dohrmann, Krenzke, Roey & Russell (2009): files, design, runs, analysis, claims."""
