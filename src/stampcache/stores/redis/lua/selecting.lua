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

local function add_members(found, name)
  for _, n in ipairs(call('SMEMBERS', name)) do found[n] = true end
end

local function depending(selector, found)
  local corpora = selector.corpus and {selector.corpus, ''} or call('SMEMBERS', K('cited'))
  local kind, name = 'chunk', selector.chunk
  if not name then kind, name = 'source', selector.source end
  for _, corpus in ipairs(corpora) do
    if name then
      add_members(found, K(kind, pair(corpus, name)))
      add_members(found, K(kind, pair(corpus, '')))
    else
      add_members(found, K('cites', corpus))
    end
  end
end

-- The numbers of all rows that a selector can touch, and maybe of others, as keys of a table.
local function candidates(selector)
  local found = {}
  if names_document(selector) then
    depending(selector, found)
  elseif selector.entry then
    local n = by_id(selector.entry)
    if n then found[n] = true end
  elseif selector.scope then
    for _, n in ipairs(call('ZRANGE', K('scope', selector.scope), 0, -1)) do found[n] = true end
  else
    for place, stamp in ipairs(selector.stamps or {}) do
      if stamp ~= '' then
        add_members(found, K('stamp', place .. ':' .. stamp))
        return found
      end
    end
    for _, order in ipairs({'used', 'stale'}) do
      for _, n in ipairs(call('ZRANGE', K(order), 0, -1)) do found[n] = true end
    end
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
