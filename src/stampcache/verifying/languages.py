"""Small words that tell English from other languages in Latin letters (pure)."""

# Without accents, which are left away before words are looked up.
_FOREIGN_WORDS = """
der die das und ist nicht ein eine ich wie kann mit auf den dem von zu wird sind wo warum
le la les des est une et pour dans que qui comment je vous avec sur pas quel quelle ou pourquoi
el los las una es por para como con del que como donde cual puedo mi su cuando
il lo gli che di per come sono non dove quando perche posso della
o os um uma e nao como onde quando posso meu minha voce qual
het een van hoe ik niet waar wat kan mijn voor zijn waarom
jak nie jest czy gdzie hur och jag det inte var kan hvordan er ikke og jeg nasil bir ve mi
"""
FOREIGN = frozenset(_FOREIGN_WORDS.split())
_ENGLISH_WORDS = """
the and is are was were do does did can could will would should how what when where who why
which my your his her our their i you he she we they it of to in on at for from with by not
have has had be been this that there a an or if me please
"""
ENGLISH = frozenset(_ENGLISH_WORDS.split())
# These are words of English as well, so alone they say nothing.
_AMBIGUOUS_WORDS = "die a an in on at is was no me do as per so i he come dove van wat kan la le"
AMBIGUOUS = frozenset(_AMBIGUOUS_WORDS.split())

FOREIGN_ONLY = FOREIGN - AMBIGUOUS - ENGLISH
