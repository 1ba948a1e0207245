-- What came after a fence. ARGV: fence.
open()
if tonumber(ARGV[1]) < meta.floor or tonumber(ARGV[1]) > meta.seq then return {'forgotten'} end
local since = changes_after(ARGV[1])
if since == FORGOTTEN then return {'forgotten'} end
return {'changes', whole(meta.seq), since[1], since[2]}
