-- How a corpus stands. ARGV: corpus.
open()
return {whole(meta.seq), standing(ARGV[1])}
