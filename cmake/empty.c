extern int tapescope_empty;
