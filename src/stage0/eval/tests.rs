use super::*;
use crate::names::ModuleInput;
use crate::syntax::extract_all;
use crate::text::TextFile;

/// Intervals of a function's answers over `rows`, adjacent equal ones joined; `!construct@line` where it stopped. A negative size is that many rows.
fn run(files: &[(&str, &str)], function: &str, args: [i128; 3], range: (i128, i128)) -> Vec<(i128, i128, String)> {
    with_stack(|| run_here(files, function, args, range)).expect("the evaluation ends")
}

fn run_here(files: &[(&str, &str)], function: &str, args: [i128; 3], range: (i128, i128)) -> Vec<(i128, i128, String)> {
    let args = args.map(|size| if size < 0 { Number::Line { slope: -size, offset: 0 } } else { Number::constant(size) });
    let mut table = Files::default();
    let ids: Vec<_> = files.iter().map(|(path, text)| table.add(TextFile::new("s", *path, *text))).collect();
    let facts = extract_all(&files.iter().map(|(_, text)| *text).collect::<Vec<_>>(), 1);
    let inputs = files.iter().zip(&ids).zip(facts).map(|(((path, _), file), facts)| ModuleInput {
        source: 0,
        path: (*path).to_owned(),
        file: *file,
        roots: vec![".".to_owned()],
        facts: facts.into(),
    });
    let program = Program::new(inputs.collect());
    let (known, environment, replaced) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let facts = Facts { program: &program, files: &table, known: &known, environment: &environment, replaced: &replaced };
    let mut evaluator = Evaluator::new(facts);
    let module = program.find(program.strings.find("tiles").unwrap(), 0).unwrap();
    let function = evaluator.global(module, function).unwrap();
    let at = Span::new(ids[0], 0, 0);
    let pieces = evaluator.pieces(&function, (&args.map(Value::Number), &[]), range, false, at);
    let mut out: Vec<(i128, i128, String)> = Vec::new();
    for piece in pieces {
        let shown = match piece.outcome {
            Ok((value, _)) => value.shown(),
            Err(stop) => format!("!{}@{}", stop.construct, table.get(stop.at.file).line_of(stop.at.start)),
        };
        match out.last_mut() {
            Some(last) if last.2 == shown => {
                assert_eq!(last.1 + 1, piece.from, "a hole");
                last.1 = piece.to;
            }
            _ => out.push((piece.from, piece.to, shown)),
        }
    }
    out
}

const fn rows(slope: i128) -> i128 {
    -slope
}

const fn fixed(value: i128) -> i128 {
    value
}

fn check(files: &[(&str, &str)], args: [i128; 3], expected: &[(i128, i128, &str)]) {
    let found = run(files, "select_config", args, (1, 8192));
    let expected: Vec<(i128, i128, String)> = expected.iter().map(|(a, b, name)| (*a, *b, (*name).to_owned())).collect();
    assert_eq!(found, expected, "{args:?}");
}

const OLD: &str = include_str!("../../../fixtures/stage0/v_old.py");
const NEW: &str = include_str!("../../../fixtures/stage0/v_new.py");

/// `(K, N)` of every GEMM whose rows are tokens, with the intervals below 65 rows in both tables.
#[test]
fn both_tables_give_the_intervals_that_are_written_down_for_rows_of_tokens() {
    type Row<'a> = (i128, i128, &'a [(i128, i128, &'a str)], &'a [(i128, i128, &'a str)], &'a str);
    let decode: &[(i128, i128, &str)] = &[(1, 64, "_DECODE")];
    let lm_head: &[(i128, i128, &str)] = &[(1, 64, "_LM_HEAD_DECODE")];
    let few: &[(i128, i128, &str)] = &[(1, 8, "_DECODE"), (9, 64, "_QKV_GATE_DECODE")];
    let table: &[Row<'_>] = &[
        // Forward: qkv, o_proj, packed gate_up, down, lm_head, and lm_head without padding.
        (4096, 1536, &[(1, 1, "_DECODE"), (2, 64, "_QKV_GATE_DECODE")], few, "_LARGE"),
        (1024, 4096, decode, decode, "_LARGE"),
        (4096, 6144, &[(1, 64, "_QKV_GATE_DECODE")], few, "_LARGE"),
        (3072, 4096, decode, decode, "_LARGE"),
        (4096, 38016, lm_head, lm_head, "_LARGE"),
        (4096, 37984, lm_head, lm_head, "_LARGE"),
        // Input gradient: qkv, o_proj, each half of gate_up as down's forward, down, lm_head.
        (1536, 4096, decode, decode, "_LARGE"),
        (4096, 1024, decode, decode, "_LARGE"),
        (4096, 3072, decode, decode, "_GATE_UP_LARGE"),
        (38016, 4096, decode, decode, "_LARGE"),
    ];
    for (k, n, old, new, new_large) in table {
        let with = |head: &[(i128, i128, &'static str)], large: &'static str| {
            let mut all = head.to_vec();
            all.extend([(65, 1024, "_SMALL"), (1025, 8192, large)]);
            all
        };
        let args = || [rows(1), fixed(*n), fixed(*k)];
        // The names are literals, so that they live as long as the test.
        let own = |head: &[(i128, i128, &str)]| -> Vec<(i128, i128, &'static str)> {
            let names = ["_DECODE", "_QKV_GATE_DECODE", "_LM_HEAD_DECODE"];
            head.iter().map(|(a, b, name)| (*a, *b, *names.iter().find(|own| *own == name).unwrap())).collect()
        };
        let large = if *new_large == "_LARGE" { "_LARGE" } else { "_GATE_UP_LARGE" };
        check(&[("tiles.py", OLD)], args(), &with(&own(old), "_LARGE"));
        check(&[("tiles.py", NEW)], args(), &with(&own(new), large));
    }
}

#[test]
fn both_tables_give_the_intervals_of_weight_gradients_where_tokens_are_the_inner_dimension() {
    for (m, n) in [(1536, 4096), (4096, 1024), (3072, 4096), (38016, 4096)] {
        for text in [OLD, NEW] {
            check(&[("tiles.py", text)], [fixed(m), fixed(n), rows(1)], &[(1, 8192, "_LARGE")]);
        }
    }
    // Down: tokens are gathered over two ranks, and exactly 4096 of them make K = 4096 with N = 3072.
    let down = || [fixed(2048), fixed(3072), rows(2)];
    check(&[("tiles.py", OLD)], down(), &[(1, 8192, "_LARGE")]);
    check(&[("tiles.py", NEW)], down(), &[(1, 2047, "_LARGE"), (2048, 2048, "_GATE_UP_LARGE"), (2049, 8192, "_LARGE")]);
}

#[test]
fn a_range_without_an_upper_bound_is_solved_like_any_other() {
    let found = run(&[("tiles.py", NEW)], "select_config", [rows(1), fixed(3072), fixed(4096)], (1, UNBOUNDED));
    let expected = [(1, 64, "_DECODE"), (65, 1024, "_SMALL"), (1025, UNBOUNDED, "_GATE_UP_LARGE")];
    assert_eq!(found, expected.map(|(a, b, name)| (a, b, name.to_owned())));
}

#[test]
fn a_changed_constant_moves_only_the_bounds_that_compare_with_it() {
    let changed = NEW.replace("_FEW_ROWS = 8", "_FEW_ROWS = 24");
    let all = [(4096, 1536), (1024, 4096), (4096, 6144), (3072, 4096), (4096, 38016), (4096, 3072)];
    let mut differ = Vec::new();
    for (k, n) in all {
        let of = |text: &str| run(&[("tiles.py", text)], "select_config", [rows(1), fixed(n), fixed(k)], (1, 8192));
        if of(NEW) != of(&changed) {
            differ.push((k, n));
        }
    }
    assert_eq!(differ, [(4096, 1536), (4096, 6144)]);
    let few = [(1, 24, "_DECODE"), (25, 64, "_QKV_GATE_DECODE"), (65, 1024, "_SMALL"), (1025, 8192, "_LARGE")];
    check(&[("tiles.py", &changed)], [rows(1), fixed(1536), fixed(4096)], &few);
}

/// Runs `select_config` with the given body over one to a hundred rows, N = 512 and K = 256.
fn body(head: &str, body: &str) -> Vec<(i128, i128, String)> {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!("{head}\ndef select_config(m, n, k):\n{body}");
    run(&[("tiles.py", &text)], "select_config", [rows(1), fixed(512), fixed(256)], (1, 100))
}

fn shows(head: &str, text: &str, expected: &[(i128, i128, &str)]) {
    let expected: Vec<(i128, i128, String)> = expected.iter().map(|(a, b, name)| (*a, *b, (*name).to_owned())).collect();
    assert_eq!(body(head, text), expected, "{text}");
}

#[test]
fn expressions_split_where_python_would_answer_otherwise() {
    shows("", "return 1 if 8 < m <= 16 else 0", &[(1, 8, "0"), (9, 16, "1"), (17, 100, "0")]);
    shows("", "return m in (3, 7)", &[(1, 2, "False"), (3, 3, "True"), (4, 6, "False"), (7, 7, "True"), (8, 100, "False")]);
    shows("", "return not (m >= 5 or m == 2)", &[(1, 1, "True"), (2, 2, "False"), (3, 4, "True"), (5, 100, "False")]);
    shows("", "return min(m, 10)", &[(1, 10, "rows"), (11, 100, "10")]);
    shows("", "return max(m * 2, 50, k // 4)", &[(1, 31, "64"), (32, 100, "2 * rows")]);
    // (m + 15) // 16 is 1 up to 16, 2 up to 32.
    shows("", "return 'one' if (m + 15) // 16 < 2 else 'more'", &[(1, 16, "\"one\""), (17, 100, "\"more\"")]);
    shows("", "return m % 64 == 0", &[(1, 63, "False"), (64, 64, "True"), (65, 100, "False")]);
    shows("", "return -m < -98", &[(1, 98, "False"), (99, 100, "True")]);
    shows("", "return (m * m > 50) + (n - k)", &[(1, 7, "256"), (8, 100, "257")]);
    shows("", "return 7 // -2 + m * 0, -7 % 3, 7 % -3", &[(1, 100, "(-4, 2, -2)")]);
    shows("", "return 5 < m and 'late' or 'early'", &[(1, 5, "\"early\""), (6, 100, "\"late\"")]);
    shows("", "return (k, n) == (256, 512) and m != 4", &[(1, 3, "True"), (4, 4, "False"), (5, 100, "True")]);
    shows("", "return 1 if m else 0", &[(1, 100, "1")]);
    shows("", "return m.bit_length() > 6", &[(1, 63, "False"), (64, 100, "True")]);
}

#[test]
fn statements_run_as_in_python() {
    shows(
        "",
        "best = 0\nfor bound, name in ((4, 'a'), (20, 'b')):\n    if m <= bound:\n        return name\nreturn 'c'",
        &[(1, 4, "\"a\""), (5, 20, "\"b\""), (21, 100, "\"c\"")],
    );
    // The loop doubles until it covers m: 1, 2, 4, ..., 128.
    shows(
        "",
        "block = 16\nwhile block < m and block < 64:\n    block *= 2\nreturn block",
        &[(1, 16, "16"), (17, 32, "32"), (33, 100, "64")],
    );
    shows(
        "",
        "for size in [8, 16, 32]:\n    if size < m:\n        continue\n    break\nelse:\n    size = 64\nreturn size",
        &[(1, 8, "8"), (9, 16, "16"), (17, 32, "32"), (33, 100, "64")],
    );
    shows(
        "TABLE = {(256, 512): 'hit'}",
        "try:\n    return TABLE[k, n + (m > 50)]\nexcept KeyError:\n    return 'miss'",
        &[(1, 50, "\"hit\""), (51, 100, "\"miss\"")],
    );
    shows("", "x = 1\nif m > 10:\n    x = 2\nelif m > 5:\n    x = 3\nreturn x", &[(1, 5, "1"), (6, 10, "3"), (11, 100, "2")]);
    shows("def half(x, *, by=2):\n    return x // by\n", "return half(m, by=10) >= 3", &[(1, 29, "False"), (30, 100, "True")]);
    shows("", "def inner(x):\n    return x + extra\nextra = 5\nreturn inner(m) > 20", &[(1, 15, "False"), (16, 100, "True")]);
    shows("", "return sum(x for x in range(4) if x < m)", &[(1, 1, "0"), (2, 2, "1"), (3, 3, "3"), (4, 100, "6")]);
    shows("", "assert m < 90, 'too many'\nreturn 1", &[(1, 89, "1"), (90, 100, "!`assert m < 90, 'too many'`: the sources refuse this@3")]);
    shows(
        "",
        "if m > 5:\n    raise ValueError(m)\nreturn 1",
        &[(1, 5, "1"), (6, 100, "!`raise ValueError(m)`: the sources refuse this@4")],
    );
}

const TILE: &str = "from dataclasses import dataclass, replace\nimport dataclasses\n@dataclass\nclass T:\n    a: int\n    b: int = 3\n    @property\n    def area(self):\n        return self.a * self.b\nX = T(1)\nY: T = replace(X, b=9)\nZ = X\nALL = {'y': Y, 'own': T(4, b=5)}\n";

#[test]
fn data_classes_keep_the_name_of_the_constant_that_holds_them() {
    shows(TILE, "return X if m < 3 else Y", &[(1, 2, "X"), (3, 100, "Y")]);
    shows(TILE, "return Z", &[(1, 100, "X")]);
    shows(TILE, "return ALL['y'], ALL['own']", &[(1, 100, "(Y, ALL[\"own\"])")]);
    shows(TILE, "return dataclasses.replace(Y, a=m)", &[(1, 100, "T(a=rows, b=9)")]);
    shows(TILE, "return Y.area, T(2) == T(2, 3), X is Y, X == T(1, 3)", &[(1, 100, "(9, True, False, True)")]);
}

#[test]
fn values_come_from_other_modules_and_conditions_are_decided() {
    let other = "import torch\nLIMIT = 12 if torch.version.hip is None else 40\n";
    let text =
        "from pkg.limits import LIMIT as bound\nfrom pkg import limits\ndef select_config(m, n, k):\n    return m < limits.LIMIT, bound\n";
    let files = [("tiles.py", text), ("pkg/__init__.py", ""), ("pkg/limits.py", other)];
    // Nothing is declared about `torch.version.hip`.
    let found = run(&files, "select_config", [rows(1), fixed(1), fixed(1)], (1, 100));
    let stopped = "!the comparison `torch.version.hip is None` of values that are not known@2".to_owned();
    assert_eq!(found, [(1, 100, stopped)]);
    let decided = other.replace("torch.version.hip is None", "__name__ == 'pkg.limits'");
    let files = [("tiles.py", text), ("pkg/__init__.py", ""), ("pkg/limits.py", &*decided)];
    let found = run(&files, "select_config", [rows(1), fixed(1), fixed(1)], (1, 100));
    assert_eq!(found, [(1, 11, "(True, 12)".to_owned()), (12, 100, "(False, 12)".to_owned())]);
}

#[test]
fn what_is_not_pure_is_named_with_its_line() {
    let stops = |head: &str, text: &str, expected: &str| shows(head, text, &[(1, 100, expected)]);
    stops("N = 3\ndef tune():\n    global N\n    N = 4\n", "return N", "!the global `N`, which a function assigns@3");
    stops("N = 3\nN = 4\n", "return N", "!the global `N`, which is assigned more than once@2");
    stops("N = 3\nN += 4\n", "return N", "!the global `N`, which is assigned more than once@2");
    stops("for N in (1, 2):\n    pass\n", "return N", "!the global `N`, bound by a statement that is not followed@1");
    stops("", "return lookup(m)", "!the name `lookup`, which nothing that is followed defines@3");
    stops("import math", "return math.log2(m)", "!the call of `math.log2`, which is not part of the sources@3");
    stops("import os", "return os.environ.get('BLOCK', 64)", "!the environment variable `BLOCK`, which the profile does not declare@3");
    stops("", "while True:\n    m = m + 0\nreturn m", "!the loop `while True`, which has no bound that was found@3");
    stops("", "return m / 2", "!the operation `m / 2`@3");
    stops("", "return m * 0.5", "!a floating-point number@3");
    stops("", "out = []\nout.append(m)\nreturn out", "!the call `out.append(m)`, which changes an object in place@4");
    stops("CACHE = {}", "CACHE[m] = 1\nreturn CACHE", "!the store `CACHE[m]` into an object@3");
    stops("", "yield m", "!the call of `select_config`, which is a generator or coroutine@1");
    stops("", "global G\nG = m\nreturn G", "!`global G`: the function is not pure@3");
    stops("def r(x):\n    return r(x)\n", "return r(m)", "!the call of `r`, nested too deeply@2");
    stops("A = B\nB = A\n", "return A", "!`A`, which is defined by itself@2");
    stops("", "return 1 // (n - 512)", "!a division by zero@3");
    stops("def deco(f):\n    return f\n@deco\ndef g(x):\n    return x\n", "return g(m)", "!the decorator `deco`@3");
    stops("", "if m > 200:\n    x = 1\nreturn x", "!the local `x`, which has no value here@5");
    stops("", "with open('t') as f:\n    return 1", "!the call `open('t')`@3");
    stops("", "return [m][1:]", "!a slice@3");
    stops("class C:\n    def __init__(self, x):\n        self.x = x\n", "return C(m)", "!the class `C`, which defines `__init__`@2");
}

#[test]
fn only_the_sizes_that_reach_what_is_not_pure_are_lost() {
    shows(
        "",
        "if m > 64:\n    return tuned(m)\nreturn 1",
        &[(1, 64, "1"), (65, 100, "!the name `tuned`, which nothing that is followed defines@4")],
    );
}

#[test]
fn hostile_sizes_and_depths_end_with_a_message() {
    let deep = format!("return {}m{}", "(".repeat(90), ")".repeat(90));
    assert_eq!(body("", &deep), [(1, 100, "rows".to_owned())], "parentheses leave no trace in a tree");
    let deep = format!("return {}m", "not ".repeat(200));
    assert_eq!(body("", &deep)[0].2, "!the call of `select_config`, which is nested too deeply@1");
    let huge = "x = n\nfor i in range(200):\n    x = x * n\nreturn x";
    assert_eq!(body("", huge)[0].2, "!a number beyond 128 bits@5");
    let long = "t = 0\nfor i in range(9000):\n    for j in range(9000):\n        t = t + 1\nreturn t";
    assert_eq!(body("", long), [(1, 100, "!more steps than are taken@6".to_owned())]);
}
