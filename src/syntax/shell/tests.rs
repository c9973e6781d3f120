//! What is read of scripts.

use super::*;

fn words(command: &Command) -> Vec<String> {
    command.words.iter().map(|word| word.text.clone()).collect()
}

fn commands(text: &str) -> Vec<Vec<String>> {
    read(text).commands.iter().map(words).collect()
}

fn assigned(script: &Script) -> Vec<(&str, Option<&str>, bool, Option<usize>)> {
    script
        .assignments
        .iter()
        .map(|assignment| {
            (assignment.name.as_str(), assignment.value.as_ref().map(|value| value.text.as_str()), assignment.exported, assignment.only_for)
        })
        .collect()
}

#[test]
fn commands_are_split_where_the_shell_splits_them() {
    let text =
        "if ! test -f a; then\n  exec python3 train.py --x 'a b' \"c\\\"d\" e\\ f | tee log >out 2>&1 && echo done # no\nfi\nf() { g; }\n";
    assert_eq!(
        commands(text),
        [
            vec!["test", "-f", "a"],
            vec!["python3", "train.py", "--x", "a b", "c\"d", "e f"],
            vec!["tee", "log"],
            vec!["echo", "done"],
            vec!["g"]
        ]
    );
}

#[test]
fn assignments_say_who_sees_them() {
    let text = "A=1\nexport B='two' C\ndeclare -x D=4\nlocal E=5\nF=6 run\nenv -u X G=7 H=\"a $b\" nohup run x\nA+=8\n";
    let script = read(text);
    assert_eq!(
        assigned(&script),
        [
            ("A", Some("1"), false, None),
            ("B", Some("two"), true, None),
            ("C", None, true, None),
            ("D", Some("4"), true, None),
            ("E", Some("5"), false, None),
            ("F", Some("6"), false, Some(0)),
            ("G", Some("7"), false, Some(1)),
            ("H", Some("a "), false, Some(1)),
            ("A", Some("8"), false, None),
        ]
    );
    assert!(script.assignments[8].appends);
    assert_eq!(script.commands.iter().map(words).collect::<Vec<_>>(), [vec!["run"], vec!["nohup", "run", "x"]]);
    assert_eq!(script.assignments[7].value.as_ref().unwrap().literal(), None);
}

#[test]
fn expansions_carry_their_default_also_where_they_are_nested() {
    let text = "export A=\"${A:-R/R}\" B=${B:?say where}\nif [[ \"${C%%/*}\" == R ]]; then x; fi\necho ${D:-${E:-$F}} \"$(g \"${H-}\")\" $((I + 1)) `echo $J`\n";
    let script = read(text);
    let found: Vec<(&str, Option<&str>)> = script
        .expansions
        .iter()
        .map(|hole| match &hole.kind {
            HoleKind::Variable { name, default } => (name.as_str(), default.as_deref()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        found,
        [
            ("A", Some("R/R")),
            ("B", None),
            ("C", None),
            ("D", Some("${E:-$F}")),
            ("E", Some("$F")),
            ("F", None),
            ("H", Some("")),
            ("J", None)
        ]
    );
    for hole in &script.expansions {
        assert!(text[hole.range.0 as usize..].starts_with('$'), "{hole:?}");
    }
    assert!(script.commands.iter().any(|command| words(command) == ["g", ""]));
}

#[test]
fn arrays_hold_their_words_with_places() {
    let text = "ARGS=(\n  --a x # no\n  \"--b=${B}\"\n)\nARGS+=(--c y)\n";
    let script = read(text);
    let elements: Vec<Vec<&str>> =
        script.assignments.iter().map(|assignment| assignment.elements.iter().map(|word| word.text.as_str()).collect()).collect();
    assert_eq!(elements, [vec!["--a", "x", "--b="], vec!["--c", "y"]]);
    let word = &script.assignments[0].elements[1];
    assert_eq!(&text[word.range.0 as usize..word.range.1 as usize], "x");
    assert!(script.assignments[1].appends);
    assert!(script.commands.is_empty());
}

#[test]
fn a_heredoc_belongs_to_its_command_even_inside_a_substitution() {
    let text = "X=\"$(\n  python3 - \"$Y\" <<'PY'\nimport os\nprint(\")\", \"$no\")\nPY\n)\"\ncat <<-EOT | wc\n\t$yes\n\tEOT\nlast\n";
    let script = read(text);
    assert_eq!(script.commands.iter().map(words).collect::<Vec<_>>(), [vec!["python3", "-", ""], vec!["cat"], vec!["wc"], vec!["last"]]);
    let inside = |heredoc: usize| &text[script.heredocs[heredoc].range.0 as usize..script.heredocs[heredoc].range.1 as usize];
    let python = script.commands[0].heredocs[0];
    assert_eq!(inside(python), "import os\nprint(\")\", \"$no\")\n");
    assert!(script.heredocs[python].quoted);
    let names: Vec<&HoleKind> = script.expansions.iter().map(|hole| &hole.kind).collect();
    let plain = |name: &str| HoleKind::Variable { name: name.to_owned(), default: None };
    assert_eq!(names, [&plain("Y"), &plain("yes")]);
    assert_eq!(script.assignments.len(), 1);
}

#[test]
fn places_of_unquoted_text_lead_back_into_the_script() {
    let text = "J=\"{ \\\"env_vars\\\": { \\\"A\\\": \\\"${N}\\\" } }\"\n";
    let script = read(text);
    let value = script.assignments[0].value.as_ref().unwrap();
    assert_eq!(value.text, "{ \"env_vars\": { \"A\": \"\" } }");
    let at = value.text.find("A\"").unwrap();
    assert!(text[value.place(at) as usize..].starts_with("A\\\""));
    assert_eq!(value.holes.len(), 1);
    assert_eq!(value.holes[0].at, value.text.rfind("\" }").unwrap());
}

#[test]
fn what_is_not_read_is_said() {
    let script = read("eval \"$x\"\n. ./other.sh\nsource \"$y\"\ncat <<EOT\nnever closed\n");
    let why: Vec<&str> = script.unseen.iter().map(|(_, why)| *why).collect();
    assert_eq!(why, ["a string that is run as code", "another file", "another file", "a here-document without its end"]);
    assert_eq!(read("x='open").unseen.len(), 1);
    assert_eq!(read("x \"open $(a").unseen.len(), 1);
}

#[test]
fn odd_text_neither_panics_nor_takes_long() {
    let pieces =
        ["$(", "${", "`", "\"", "'", "<<A", "\n", "((", "é", "\\", "=(", "env ", "export A", "$", ")", "}", "#", ";", "<(", "\r\n"];
    let mut state = 1_u32;
    for length in 0..400 {
        let mut text = String::new();
        for _ in 0..length % 40 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(pieces[(state >> 16) as usize % pieces.len()]);
        }
        let script = read(&text);
        for command in &script.commands {
            assert!(text.get(command.range.0 as usize..command.range.1 as usize).is_some(), "{text:?}");
        }
    }
    for piece in pieces {
        let text = piece.repeat(20_000);
        let _ = read(&text);
    }
    assert!(read(&"$(".repeat(1000)).unseen.iter().any(|(_, why)| *why == "substitutions nested too deep"));
}
