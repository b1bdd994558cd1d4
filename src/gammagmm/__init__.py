"""What share of these unlabelled rows are anomalies, and how sure can we be?"""
