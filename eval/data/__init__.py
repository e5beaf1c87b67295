"""What a benchmark reads and keeps: question sets, records, journal, differences."""
