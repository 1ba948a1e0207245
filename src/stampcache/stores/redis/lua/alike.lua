-- For each of these chunks, one of the same vector and another digest.
-- ARGV: corpus, then id, digest of the vector, digest of the chunk.
local others = {}
for at = 2, #ARGV, 3 do
  local same = call('HGETALL', K('alike', pair(ARGV[1], ARGV[at + 1])))
  for place = 1, #same, 2 do
    local digest = same[place + 1]
    if call('SISMEMBER', K('doubts', ARGV[1]), same[place]) == 1 then
      digest = '?' .. string.gsub(digest, '^%?', '')
    end
    if digest ~= ARGV[at + 2] then
      others[#others + 1] = same[place]
      break
    end
  end
end
return chunks(ARGV[1], others)
