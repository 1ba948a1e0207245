-- The sequence and the era, as of now.
open()
return string.format('%016.0f%016.0f', meta.seq, meta.era)
