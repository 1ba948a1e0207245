"""Words that may stand for each other in a question (pure data)."""

GROUPS = """
    fix repair resolve solve troubleshoot | remove delete erase drop discard
    | create build generate construct produce | start begin launch | stop quit halt cease
    | end finish | buy purchase | obtain acquire receive | big large huge | small little tiny
    | fast quick rapid quickly fastest speedy | smart intelligent clever
    | important crucial essential | difference differ different distinction distinguish
    | cause reason | learn study | choose select pick | change modify alter edit | move relocate
    | begin commence | cost price | movie film | car automobile | job career occupation
    | happy joyful glad | sad unhappy | angry furious mad | scared afraid frightened
    | humble modest | brave courageous | religious spiritual | improve enhance boost
    | reduce decrease lower lessen cut | increase raise grow | show display
    | answer reply respond | error bug issue problem trouble | type kind form | job work
    | doctor physician | kid child children | vertical vertically | horizontal horizontally
    | install setup | handle deal manage cope | function work operate | company business firm
    | earn gain | maximum longest largest highest | minimum shortest smallest lowest
    | purpose goal aim | benefit advantage pro | drawback disadvantage con downside | house home
    | rich wealthy | main primary principal major | start begin | run execute | call invoke
    | check verify examine inspect | allow permit | forbid prohibit ban | safe secure
    | near close | often frequently | example sample | picture photo image | rule regulation
    | law legislation | requirement prerequisite | effect impact influence
    | meaning definition define | beautiful pretty | hard difficult tough | prevent avoid
    | duration length long | wash clean | lunar moon | terrible awful | vocal outspoken
    | thankful grateful | increase enhance | intern internship | amount quantity number
    | time duration | method technique approach | city town | important significant
    | necessary required needed | happen occur | originate emerge arise | begin originate
    | age old | assist aid help | answer solution | annual yearly | attempt try
    | average typical | bike bicycle | boss manager supervisor | bug defect | calculate compute
    | cancel terminate | cancel abort | close shut | collect gather | complete finish
    | contain include | convert transform | country nation | couple pair | damage harm
    | decide determine | define meaning | demand require | describe explain | deposit prepayment
    | detect find | discover find | display view | earth world globe | email mail
    | employee worker staff | exit leave | explanation description | expense cost | fee charge
    | feature functionality | folder directory | food meal | free gratis complimentary
    | friend buddy | gift present | guide tutorial | ill sick | illness disease
    | instruction direction | invent create | join combine merge | large major | lawyer attorney
    | limit restriction cap | link url | location place | login signin | look search
    | lookup search | marry wed | medicine drug medication | message text | mistake error
    | money cash | monitor track | need require | notify alert | option choice alternative
    | page webpage | parameter argument | parcel package | password passcode
    | permission authorization | plan scheme | popular famous | possible feasible | price rate
    | problem difficulty | program application software | profession occupation | query question
    | quit resign | recover restore | refund reimbursement | register enroll signup
    | relationship relation | remember recall | replace substitute swap | result outcome
    | revise edit | road street | role job | salary wage pay | save store | separate split
    | setting configuration preference | shop store | shipping delivery | shorten abbreviate
    | signup register | skill ability | speed velocity | student pupil | sum total
    | survive live | talk speak chat | teacher instructor | team group | terminate kill
    | test exam | trip journey travel | understand grasp | use utilize | vacation holiday
    | website site | weird strange odd | woman lady | write compose | yard garden
    | university college | spouse partner | mobile cellphone smartphone
"""
