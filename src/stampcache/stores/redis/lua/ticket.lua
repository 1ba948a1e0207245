-- Who has a ticket now, and how a making ended. ARGV: name, token.
return {call('GET', K('ticket', ARGV[1])) or '', call('GET', K('end', ARGV[2])) or ''}
