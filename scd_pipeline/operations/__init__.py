"""Operations other than loads: check, status, maintenance, repair and checklist of existing tables."""
