-- Makes stale some of what a selector touches, by the numbers of their rows; the first call logs it.
-- ARGV: selector, its mark, its body, corpus, after which row, up to which ('': the last one), how many.
-- {how many held until now, after which row to go on, up to which}; an empty one: that was all.
open()
local last = ARGV[6]
if last == '' then
  log_change(ARGV[4], ARGV[3])
  last = call('HGET', K('meta'), 'rows') or '0'
end
local selector = cmsgpack.unpack(ARGV[1])
local numbers = {}
for n in pairs(candidates(selector)) do
  local number = tonumber(n)
  if number > tonumber(ARGV[5]) and number <= tonumber(last) then numbers[#numbers + 1] = number end
end
table.sort(numbers)
local some = {}
for place = 1, math.min(#numbers, tonumber(ARGV[7])) do some[whole(numbers[place])] = true end
local held = mark_all(touched({selector}, nil, some), ARGV[2])
reap()
local more = #numbers > tonumber(ARGV[7])
return {held, more and whole(numbers[tonumber(ARGV[7])]) or '', last}
