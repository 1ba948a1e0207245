-- Which entries a change touches: the rule of `stampcache.stores.selection.touches`, for rows.
-- A selector is a table with corpus, source, chunk, entry, scope, stamps (five texts); absent is any.
local function covers(selector, part)
  local function fits(want, have) return not want or have == want or have == '' end
  return fits(selector.corpus, part[1]) and fits(selector.source, part[2]) and fits(selector.chunk, part[3])
end

local function names_document(selector)
  return selector.corpus or selector.source or selector.chunk
end

local function touches(selector, r)
  if selector.entry and selector.entry ~= r.i then return false end
  if selector.scope and selector.scope ~= r.s then return false end
  if selector.stamps then
    local have = cmsgpack.unpack(r.st)
    for place, want in ipairs(selector.stamps) do
      if want ~= '' and want ~= have[place] then return false end
    end
  end
  if not names_document(selector) then return true end
  for _, part in ipairs(cmsgpack.unpack(r.dp)) do
    if covers(selector, part) then return true end
  end
  return false
end

-- Where all rows are found that a selector can touch, and maybe others: {how one scans it, its name} each.
local function places_of(selector)
  local places = {}
  local function add(how, name) places[#places + 1] = {how, name} end
  if names_document(selector) then
    local kind, name = 'chunk', selector.chunk
    if not name then kind, name = 'source', selector.source end
    for _, corpus in ipairs(selector.corpus and {selector.corpus, ''} or call('SMEMBERS', K('cited'))) do
      if name then
        add('SSCAN', K(kind, pair(corpus, name)))
        add('SSCAN', K(kind, pair(corpus, '')))
      else
        add('SSCAN', K('cites', corpus))
      end
    end
    return places
  end
  if selector.entry then
    add('ROW', by_id(selector.entry) or '')
    return places
  end
  if selector.scope then
    add('ZSCAN', K('scope', selector.scope))
    return places
  end
  for place, stamp in ipairs(selector.stamps or {}) do
    if stamp ~= '' then
      add('SSCAN', K('stamp', place .. ':' .. stamp))
      return places
    end
  end
  add('HSCAN', K('at'))
  return places
end

-- Some of the rows of a place, and the cursor by which to go on; '0' when that was all.
local function scan(place, cursor, count)
  if place[1] == 'ROW' then return '0', {place[2]} end
  local reply = call(place[1], place[2], cursor, 'COUNT', count)
  if place[1] == 'SSCAN' then return reply[1], reply[2] end
  local rows = {}
  for at = place[1] == 'HSCAN' and 2 or 1, #reply[2], 2 do rows[#rows + 1] = reply[2][at] end
  return reply[1], rows
end

-- The numbers of all rows that a selector can touch, and maybe of others, as keys of a table.
local function candidates(selector)
  local found = {}
  for _, place in ipairs(places_of(selector)) do
    local cursor, rows = '0', nil
    repeat
      cursor, rows = scan(place, cursor, 1000)
      for _, n in ipairs(rows) do found[n] = true end
    until cursor == '0'
  end
  return found
end

-- All rows that hold, or may hold again, until this change, in the order of their addresses.
-- Without those that have a reach in a corpus, ``beside``; only those ``among`` some, where these are given.
local function touched(selectors, beside, among)
  local rows, seen = {}, {}
  for _, selector in ipairs(selectors) do
    for n in pairs(among or candidates(selector)) do
      if not seen[n] then
        local r = row(n)
        if r and r.st and not (beside and r.rc == beside) and touches(selector, r) then
          seen[n] = true
          r.n = n
          rows[#rows + 1] = r
        end
      end
    end
  end
  table.sort(rows, function(one, other)
    if one.p ~= other.p then return one.p < other.p end
    return one.k < other.k
  end)
  return rows
end

-- Makes rows stale for good; returns how many held until now.
local function mark_all(rows, change)
  local held = 0
  for _, r in ipairs(rows) do
    if r.m == '' then
      mark(r.n, r, change)
      held = held + 1
    else
      finish(r.n, r)
    end
  end
  return held
end
