-- Who has a ticket now, and how a making ended. ARGV: tenant, name, token.
return {call('GET', ticket_key(ARGV[1], ARGV[2])) or '', call('GET', end_key(ARGV[1], ARGV[3])) or ''}
