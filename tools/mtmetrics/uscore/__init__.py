"""Makes a UScore preset for a language pair from two monolingual files (Belouadi and Eger, 2023)."""
