"""The neighbours it is compared with: ε·d private maps; know no table of people."""
