-- Chunks of a corpus and what a commit must know besides. ARGV: corpus, ids (MessagePack).
open()
local key = K('corpus', ARGV[1])
local found = call('HMGET', key, 'version', 'complete', 'doubted')
return {found[1] or '0', found[2] or '0', found[3] or '0', call('HVALS', K('intents', ARGV[1])),
  chunks(ARGV[1], cmsgpack.unpack(ARGV[2]))}
