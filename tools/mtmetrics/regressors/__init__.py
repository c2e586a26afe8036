"""Networks that learn from human judgements how good a translation is: BiLSTM, BiLSTM with attention, ESIM (Mathur et
al., 2019)."""
