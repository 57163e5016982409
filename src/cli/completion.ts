import { type Arguments, type Command, EXIT, problemsIn, UsageError } from './command.ts';

type Commands = ReadonlyMap<string, Command>;

const SCRIPTS: Readonly<Record<string, (commands: Commands) => string>> = {
  bash: bashScript,
  zsh: zshScript,
};
const SHELLS = Object.keys(SCRIPTS);

/**
 * Creates `completion bash|zsh`: a script for the shell, generated from the table that also parses, so that it need not
 * run the program at the prompt.
 */
export function createCompletion(commands: () => Promise<Commands>): Command {
  return {
    summary: `print the completion script for ${SHELLS.join(' or ')}`,
    usage: `completion ${SHELLS.join('|')}`,
    examples: [
      ['eval "$(catalog-mirror completion bash)"', 'in ~/.bashrc'],
      ['eval "$(catalog-mirror completion zsh)"', 'in ~/.zshrc, after compinit'],
    ],
    exits: ['ok', 'usage'],
    options: {},
    optionHelp: {},
    positionals: true,
    words: SHELLS,
    problemsOf: problemsIn(scriptOf),
    async run({ print, ...args }) {
      const script = scriptOf(args);
      print(script(await commands()));
      return EXIT.ok;
    },
  };
}

function scriptOf({ positionals: [shell = '', ...more] }: Arguments): (commands: Commands) => string {
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
  if (script === undefined || more.length > 0)
    throw new UsageError([`expected one shell: ${SHELLS.join(' or ')}`]);
  return script;
}

const ENV_FILE = 'env-file';
const EVERYWHERE = {
  [ENV_FILE]: 'read settings from this file, too',
  help: 'show help for the command',
  version: 'print the version',
};

/** Returns the options of a command: whether each needs or allows a value, and its known values. */
function optionsOf(command: Command) {
  return Object.entries({ ...command.optionHelp, ...EVERYWHERE }).map(([option, says]) => ({
    flag: `--${option}`,
    says,
    choices: command.choices?.[option] ?? [],
    isFile: option === ENV_FILE,
    value:
      option === ENV_FILE || command.options[option]?.type === 'string'
        ? ('needed' as const)
        : command.optionalValues?.includes(option) === true
          ? ('possible' as const)
          : null,
  }));
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Works in bash 3.2 and newer, and without the bash-completion package. */
function bashScript(commands: Commands): string {
  const names = [...commands.keys()].join(' ');
  const cases = [...commands].map(([name, command]) => {
    const options = optionsOf(command);
    const valued = options.filter(({ value }) => value === 'needed').map(({ flag }) => flag);
    const flags = options.map(({ flag }) => flag);
    return (
      `    ${name}) words=${quoted((command.words ?? []).join(' '))} flags=${quoted(flags.join(' '))} ` +
      `valued=${quoted(valued.join(' '))} ;;`
    );
  });
  const choices = [...commands].flatMap(([name, command]) =>
    optionsOf(command)
      .filter((option) => option.choices.length > 0)
      .map(
        (option) => `    ${quoted(`${name} ${option.flag}`)}) words=${quoted(option.choices.join(' '))} ;;`,
      ),
  );
  return `# catalog-mirror, completion for bash
_catalog_mirror() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]}
  local words='' flags='' valued='' flag left='' option=$previous
  COMPREPLY=()
  # Options without a command are those of run.
  if [[ $COMP_CWORD -gt 1 && $command != -* ]]; then :; else command=run; fi
  case $command in
${cases.join('\n')}
    help) words=${quoted(names)} ;;
  esac
  if [[ $COMP_CWORD -eq 1 ]]; then words=${quoted(`${names} help`)}; elif [[ $COMP_CWORD -gt 2 ]]; then words=''; fi
  # What stands behind such an option, or behind a sign, is a value.
  [[ $previous != = ]] || option=\${COMP_WORDS[COMP_CWORD - 2]}
  if [[ $previous == = || $current == = || " $valued " == *" $option "* ]]; then
    words=''
    if [[ $option == --${ENV_FILE} ]]; then COMPREPLY=($(compgen -f -- "\${current#=}")); return; fi
    case "$command $option" in
${choices.join('\n')}
    esac
    COMPREPLY=($(compgen -W "$words" -- "\${current#=}"))
    return
  fi
  for flag in $flags; do
    [[ " \${COMP_WORDS[*]} " == *" $flag "* ]] && [[ $flag != "$current" ]] || left+=" $flag"
  done
  if [[ $current == -* || -z $words ]]; then words=$left; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _catalog_mirror catalog-mirror`;
}

function zshScript(commands: Commands): string {
  // A colon ends the name in `_describe`; brackets, colons and backslashes have a meaning in `_arguments`.
  const described = [...commands].map(([name, { summary }]) => `    ${quoted(`${name}:${summary}`)}`);
  const escaped = (text: string) => text.replace(/[[\]:\\]/g, String.raw`\$&`);
  const cases = [...commands].map(([name, command]) => {
    const options = optionsOf(command).map(({ flag, says, value, choices, isFile }) => {
      const known = isFile ? '_files' : choices.length === 0 ? ' ' : `(${choices.join(' ')})`;
      const takes = { needed: `:value:${known}`, possible: `::value:${known}` };
      return quoted(
        `${flag}${value === null ? '' : '='}[${escaped(says)}]${value === null ? '' : takes[value]}`,
      );
    });
    const words = command.words === undefined ? [] : [quoted(`1:word:(${command.words.join(' ')})`)];
    const others = command.positionals && command.words === undefined ? [quoted('*:word: ')] : [];
    return `    ${name}) _arguments ${[...options, ...words, ...others].join(' ')} ;;`;
  });
  return `#compdef catalog-mirror
_catalog-mirror() {
  local -a commands=(
${described.join('\n')}
    'help:show help for all commands, or for one'
  )
  local command=$words[2]
  if (( CURRENT == 2 )) && [[ $command != -* ]]; then
    _describe -t commands command commands
    return
  fi
  # Options without a command are those of run.
  if [[ $command == -* ]]; then command=run; else shift words; (( CURRENT-- )); fi
  case $command in
${cases.join('\n')}
    help) _arguments ${quoted(`1:command:(${[...commands.keys()].join(' ')})`)} ;;
  esac
}
# As a file of fpath it is the function's body; sourced, it registers itself.
if [[ $funcstack[1] == _catalog-mirror ]]; then _catalog-mirror "$@"; else compdef _catalog-mirror catalog-mirror; fi`;
}
