//! Python in the here-documents of shell scripts.
//!
//! In: the text of a script. Out: for each here-document that an interpreter of Python reads as its program, a text of the same length with
//! blanks in place of everything else, so that every place in it is the same place in the script. Left out: here-documents that are data of a
//! program with a name (`python tool.py <<EOF`).

use super::shell::{self, Command};

/// Programs in the here-documents of a script, in order of place.
#[must_use]
pub fn programs(text: &str) -> Vec<String> {
    if !text.contains("<<") || !text.contains("python") {
        return Vec::new();
    }
    let script = shell::read(text);
    let read = script.commands.iter().filter(|command| reads_program(command)).flat_map(|command| &command.heredocs);
    read.filter_map(|at| script.heredocs.get(*at)).map(|heredoc| alone(text, heredoc.range)).collect()
}

/// Whether a command is an interpreter of Python that reads its program from its input.
fn reads_program(command: &Command) -> bool {
    let mut words = command.words.iter().skip_while(|word| {
        let name = word.literal().map(|text| text.rsplit('/').next().unwrap_or(text));
        !name.is_some_and(|name| name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.')))
    });
    if words.next().is_none() {
        return false;
    }
    for word in words {
        match word.literal() {
            Some("-") => return true,
            Some("-c" | "-m") => return false,
            Some(flag) if flag.starts_with('-') => {}
            _ => return false,
        }
    }
    true
}

/// The text with blanks for every byte outside a range; lines stay lines.
fn alone(text: &str, range: (u32, u32)) -> String {
    let inside = range.0 as usize..range.1 as usize;
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            _ if inside.contains(&at) => out.push(c),
            '\n' => out.push(c),
            _ => out.extend(std::iter::repeat_n(' ', c.len_utf8())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::programs;

    #[test]
    fn a_program_stands_where_it_stood() {
        let script = "# é\npython3 - <<'PY' | tee log\nimport os\nPY\necho done\n";
        let [program] = &programs(script)[..] else { panic!("one program") };
        assert_eq!(program.len(), script.len());
        assert_eq!(program.find("import os"), script.find("import os"));
        assert_eq!(program.trim(), "import os");
        assert_eq!(program.lines().position(|line| line == "import os"), Some(2));
    }

    #[test]
    fn only_what_an_interpreter_reads_as_its_program() {
        let program = |command: &str| programs(&format!("{command} <<EOF\nimport os\nEOF\n")).len();
        for command in ["python", "python3.11 -u", "/usr/bin/python3 - a b", "uv run --no-sync python - \"$X\"", "env A=1 python -"] {
            assert_eq!(program(command), 1, "{command}");
        }
        for command in ["cat", "python tool.py", "python -m tool", "python -c pass", "pythonic -"] {
            assert_eq!(program(command), 0, "{command}");
        }
    }
}
