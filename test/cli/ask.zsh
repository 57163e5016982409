# Presses Tab behind each argument, as typed after `catalog-mirror `, in a zsh that has loaded $SCRIPT; prints what is offered,
# a line each, and a line of `=` behind every answer.
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PROMPT= PS2= RPROMPT=; unsetopt zle_bracketed_paste 2>/dev/null"
zpty -w z "autoload -Uz compinit; compinit -D -u; eval \"\$SCRIPT\"; LISTMAX=0"
zpty -w z 'zstyle ":completion:*" list-grouped false; zstyle ":completion:*" insert-tab false'
# Every match goes through compadd: the real one tells which of them fit what is typed.
zpty -w z 'compadd () {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  typeset -a __hits
  builtin compadd -A __hits "$@"
  (( $#__hits )) && print -l -r -- "%"${^__hits%=}
  return 1
}'
zpty -w z 'ask () { compprefuncs=(ask_begin); comppostfuncs=(ask_end) }; ask_begin () { compprefuncs=(ask_begin); print "<<" }; ask_end () { comppostfuncs=(ask_end); print ">>" }; ask'
zpty -w z 'print READY''NOW'
zpty -r -m z seen '*READYNOW*'
for typed in "$@"; do
  zpty -w -n z $'\C-u'"catalog-mirror $typed"$'\t'
  zpty -r -m z seen '*<<*>>*'
  seen=${seen##*<<}
  for line in ${(f)seen//$'\r'/}; do [[ $line == %* ]] && print -r -- "${line#%}"; done | sort -u
  print -r -- =
done
zpty -d z
