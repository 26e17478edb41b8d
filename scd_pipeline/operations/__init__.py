"""Operations other than loads: checks, status and maintenance of the tables."""
