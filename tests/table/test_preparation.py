"""How ids, true labels, missing values and text are treated, and the notes about it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gammagmm._support.documents import Form, Reader, record_to_data
from gammagmm.cli.columns import is_answered
from gammagmm.cli.words import COMMAND
from gammagmm.errors import Note, SavedFileError, TableError
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.raw_table import NumberForm, RawTable
from gammagmm.readers.source import Asked, Source
from gammagmm.table.frames import frame_table
from gammagmm.table.guesses import Guess
from gammagmm.table.preparation import Choices, Preparation, prepare
from gammagmm.table.words import ARRAY, PYTHON, problem_todo

TABLE = """name,size,weight,colour,label
u,1,2.5,red,no
v,,3.5,green,yes
w,4,,red,no
x,7,1,blue,yes
"""


def raw_of(text):
    return read_delimited(Source("t.csv", ".csv", text.encode(), asked=Asked(is_strict=True)))


def prepared_of(text, **choices):
    return prepare(raw_of(text), Choices(**choices))


def refusal(text, **choices):
    with pytest.raises(TableError) as caught:
        prepared_of(text, **choices)
    assert caught.value.todo, "no advice"
    return caught.value


def problem_of(text, **choices):
    """The only problem of a table."""
    [problem] = refusal(text, **choices).problems
    return problem


def test_everything_at_once():
    prepared = prepared_of(
        TABLE, id="name", truth="label", drop=("size",), missing="drop", categories="encode"
    )
    assert prepared.columns == ("weight", "colour=green", "colour=red")
    assert prepared.values.tolist() == [[2.5, 0.0, 1.0], [3.5, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert prepared.values.dtype == np.float64
    assert prepared.ids == ("u", "v", "x")
    assert prepared.all_places.tolist() == [0, 1, 3]
    assert prepared.truth.tolist() == [0, 1, 1]
    texts = "'blue', 'green', 'red'"
    assert prepared.notes == (
        Note.of("tables.dropped", "t.csv", n_dropped=1, rows="4 rows"),
        Note.of("tables.encoded", "colour", n_columns=2, texts=texts),
    )
    assert repr(prepared) == "Table(3 rows, 3 columns, 2 notes)"


def test_plain_numbers_stay_as_they_are():
    prepared = prepared_of("a,b\n1,5\n2,6\n")
    assert prepared.values.tolist() == [[1.0, 5.0], [2.0, 6.0]]
    assert (prepared.columns, prepared.row_names, prepared.notes) == (("a", "b"), ("1", "2"), ())
    assert prepared.all_places.tolist() == [0, 1]
    assert prepared.truth is None


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"missing": "ignore"}, "missing must be one of error, drop, impute, got 'ignore'."),
        ({"dates": "x"}, "dates must be one of drop, encode, got 'x'."),
    ],
)
def test_unknown_values_of_a_choice(choices, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Choices(**choices)


@pytest.mark.parametrize("role", ["id", "truth", "drop"])
def test_unknown_columns(role):
    name = ("Wieght",) if role == "drop" else "Wieght"
    error = refusal(TABLE, **{role: name})
    assert "'Wieght'" in error.what
    assert error.what.endswith("'weight'")
    assert error.todo.endswith("'name', 'size', 'weight', 'colour', 'label'.")


def test_unknown_column_among_many():
    header = ",".join(f"c{j}" for j in range(30))
    row = ",".join(["1"] * 30)
    error = refusal(f"{header}\n{row}\n{row}\n", id="zzz")
    assert "similar" not in error.what
    assert error.todo.endswith("'c19' and 10 more.")


@pytest.mark.parametrize(
    ("choices", "first", "second"),
    [
        ({"id": "name", "truth": "name"}, "id", "truth"),
        ({"id": "name", "drop": ("size", "name")}, "id", "drop"),
        ({"truth": "name", "drop": ("name",)}, "truth", "drop"),
    ],
)
def test_one_column_in_two_options(choices, first, second):
    assert refusal(TABLE, **choices).what.endswith(f"for '{first}' and for '{second}'")


def test_dropping_twice_is_dropping_once():
    assert prepared_of("a,b\n1,2\n3,4\n", drop=("a", "a")).columns == ("b",)


def test_ids_are_kept_as_they_are_written():
    prepared = prepared_of("key,a\n007,1\n12345678901234567890,2\nNA,3\n", id="key")
    assert prepared.ids == ("007", "12345678901234567890", "")


def test_rows_are_numbered_by_the_file():
    prepared = prepared_of("a,b\n1,2\n,3\n4,5\n", missing="drop")
    assert prepared.row_names == ("1", "3")
    assert prepared.all_places.tolist() == [0, 2]


TRUTHS = ["0/1", "false/true", "no/yes", "n/o", "normal/anomaly", "inlier/outlier", "1/-1"]


@pytest.mark.parametrize("change", [str, str.upper, str.title])
@pytest.mark.parametrize("pair", TRUTHS)
def test_truth(pair, change):
    normal, anomaly = map(change, pair.split("/"))
    prepared = prepared_of(f"a,t\n1,{normal}\n2, {anomaly} \n3,{normal}\n", truth="t")
    assert prepared.truth.tolist() == [0, 1, 0]
    assert prepared.truth.dtype == np.int64
    assert prepared.columns == ("a",)


def test_truth_of_one_kind():
    assert prepared_of("a,t\n1,0\n2,0\n", truth="t").truth.tolist() == [0, 0]
    assert prepared_of("a,t\n1,-1\n2,-1\n", truth="t").truth.tolist() == [1, 1]
    problem = problem_of("a,t\n1,1\n2,1\n", truth="t")
    assert (problem.column, problem.code, problem.remedies) == ("t", "truth", ("words", "drop"))


@pytest.mark.parametrize("cells", [("0", "2"), ("-1", "0"), ("yes", "false"), ("0.5", "1")])
def test_truth_with_other_words_is_refused(cells):
    problem = problem_of(f"a,t\n1,{cells[0]}\n2,{cells[1]}\n", truth="t")
    assert (problem.column, problem.code, problem.remedies) == ("t", "truth", ("words", "drop"))
    assert f"'{cells[0]}', '{cells[1]}'" in problem.what


@pytest.mark.parametrize("cells", [("0", "", "NA"), ("yes", "", "?")])
def test_truth_has_no_gaps(cells):
    rows = "".join(f"{j},{cell}\n" for j, cell in enumerate(cells))
    problem = problem_of(f"a,t\n{rows}", truth="t", missing="drop")
    assert (problem.column, problem.code, problem.remedies) == ("t", "truth", ("fill by hand",))
    assert problem.what.endswith("2 missing values, the first in line 3")


@pytest.mark.parametrize("missing", ["error", "drop", "impute"])
def test_infinite_values_are_always_refused(missing):
    problem = problem_of("a,the b\n1,2\n2,inf\n3,-inf\n", missing=missing)
    assert (problem.column, problem.code) == ("the b", "infinite")
    assert problem.remedies == ("correct", "drop")
    assert problem.what.endswith("2 infinite values, the first in line 3")
    assert prepared_of("a,b\n1,2\n2,inf\n", drop=("b",), missing=missing).columns == ("a",)


def test_missing_values_are_refused():
    problem = problem_of("a,b\n1,2\n3,\n4,NA\n5,6\n")
    assert (problem.column, problem.code) == ("b", "missing")
    assert problem.remedies == ("fill", "drop rows", "drop")
    assert problem.what.endswith("2 missing values, the first in line 3")
    problem = problem_of("a,b\n1,x\n2,\n3,y\n", categories="encode")
    assert (problem.column, problem.code) == ("b", "missing")


MESSAGES = {
    PYTHON: (
        "t.csv, column 'my b': 2 missing values, the first in line 3. Use strict=False, X.dropna() "
        "or columns={'drop': ['my b']}.",
        "t.csv has 2 problems: column 'a': 2 cells are not numbers, the first is 'x' in line 2; "
        "column 'c': 1 infinite value, in line 3. Use strict=False or columns={'drop': ['a']}. "
        "Correct it or use columns={'drop': ['c']}.",
        "t.csv, column 'b': 50 cells are not numbers, the first is 't0' in line 2; 25 different "
        "texts, and at most 20 can be encoded. Use columns={'drop': ['b']} or columns={'id': 'b'} "
        "if it names the rows.",
    ),
    COMMAND: (
        "t.csv, column 'my b': 2 missing values, the first in line 3. Use --missing impute, "
        "--missing drop or --drop 'my b'.",
        "t.csv has 2 problems: column 'a': 2 cells are not numbers, the first is 'x' in line 2; "
        "column 'c': 1 infinite value, in line 3. Use the command without --strict or --drop a. "
        "Correct it or use --drop c.",
        "t.csv, column 'b': 50 cells are not numbers, the first is 't0' in line 2; 25 different "
        "texts, and at most 20 can be encoded. Use --drop b or --id b if it names the rows.",
    ),
    ARRAY: (
        "t.csv, column 'my b': 2 missing values, the first in line 3. Use strict=False, X without "
        "these rows or X without the column my b.",
        "t.csv has 2 problems: column 'a': 2 cells are not numbers, the first is 'x' in line 2; "
        "column 'c': 1 infinite value, in line 3. Use strict=False or X without the column a. "
        "Correct it or use X without the column c.",
        "t.csv, column 'b': 50 cells are not numbers, the first is 't0' in line 2; 25 different "
        "texts, and at most 20 can be encoded. Use X without the column b.",
    ),
}


@pytest.mark.parametrize("words", MESSAGES, ids=["Python", "command", "array"])
def test_whole_messages_in_every_set_of_words(words):
    many = "".join(f"{i % 3},t{i % 25}\n" for i in range(50))
    tables = ["a,my b\n1,2\n3,\n4,NA\n5,6\n", "a,c\nx,1\ny,inf\n", f"a,b\n{many}"]
    for text, message in zip(tables, MESSAGES[words], strict=True):
        with pytest.raises(TableError) as caught:
            prepare(raw_of(text), Choices(), words)
        assert str(caught.value) == message


def test_rows_with_gaps_are_dropped():
    prepared = prepared_of("a,b\n1,x\n2,\n,y\n4,y\n", missing="drop", categories="encode")
    assert prepared.columns == ("a", "b=y")
    assert prepared.values.tolist() == [[1.0, 0.0], [4.0, 1.0]]
    assert prepared.notes[0] == Note.of("tables.dropped", "t.csv", n_dropped=2, rows="4 rows")


@pytest.mark.parametrize(
    ("rows", "n_left"), [(",1\n2,\n,2\n3,\n", "0 rows"), (",1\n2,3\n3,\n", "1 row")]
)
def test_dropping_leaves_too_little(rows, n_left):
    error = refusal(f"a,b\n{rows}", missing="drop")
    assert f"has {n_left} without missing values" in error.what
    assert error.todo.startswith("Use strict=False")


def test_gaps_are_filled_with_the_median_or_are_a_text_of_their_own():
    text = "a,b,c\n1,x,1\n,y,1\n4,,2\n100,y,3\n,z,4\n"
    prepared = prepared_of(text, missing="impute", categories="encode")
    assert prepared.values[:, 0].tolist() == [1.0, 4.0, 4.0, 100.0, 4.0]
    assert prepared.columns == ("a", "b=(missing)", "b=x", "b=z", "c")
    assert prepared.values[:, 1].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]
    assert prepared.notes == (
        Note.of("tables.filled", "a", n_cells=2, value=4.0, is_new=False),
        Note.of("tables.gap text", "b", n_cells=1, text="(missing)"),
        Note.of("tables.encoded", "b", n_columns=3, texts="'(missing)', 'x', 'y', 'z'"),
    )
    assert prepared.all_places.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("missing", ["error", "drop", "impute"])
def test_a_column_without_values_is_left_out(missing):
    prepared = prepared_of("a,b\n1,\n2,NA\n", missing=missing)
    assert prepared.values.tolist() == [[1.0], [2.0]]
    assert prepared.guesses == (Guess("b", "empty", "all its values are missing"),)


def test_text_is_refused():
    problem = problem_of("a,my b\n1,2\n3,red\n")
    assert (problem.column, problem.code, problem.remedies) == ("my b", "text", ("encode", "drop"))
    assert problem.what.endswith("'red' in line 3")
    problem = problem_of('"a\nb",c\nx,1\ny,2\n')
    assert problem_todo(problem, COMMAND) == "Use the command without --strict or --drop NAME."
    assert problem_todo(problem, PYTHON) == r"Use strict=False or columns={'drop': ['a\nb']}."


def test_the_wrong_cell_among_numbers_is_named():
    german = "".join(f"{i},37;{i}\n" for i in range(1, 40))
    problem = problem_of(f"preis;n\n{german}abc;1\n")
    assert (problem.column, problem.code, problem.remedies) == (
        *("preis", "text"),
        ("correct", "drop"),
    )
    assert problem.what.endswith("'abc' in line 41")


def test_few_different_numbers_are_no_categories():
    counts = "".join(f"{i % 5},{i / 7}\n" for i in range(39))
    text = f"n,x\n{counts}Total,1\n"
    problem = problem_of(text)
    assert (problem.column, problem.code, problem.remedies) == ("n", "text", ("correct", "drop"))
    assert problem.what.endswith("'Total' in line 41")
    encoded = prepared_of(text, categories="encode").columns  # what the user asks for is done
    assert encoded == ("n=1", "n=2", "n=3", "n=4", "n=Total", "x")


@pytest.mark.parametrize(
    ("cells", "first", "second"),
    [
        (["1,234", "1.5", "2,5"], "'1.5' in line 3", "'2,5' in line 4"),
        (["5 %", "7 %", "0.5"], "'5 %' in line 2", "'0.5' in line 4"),
        (["inf", "1,5", "2,5"], "'inf' in line 2", "'1,5' in line 3"),
        (["1,234", "1'234", "1.5"], "'1,234' in line 2", "'1.5' in line 4"),
    ],
)
def test_numbers_in_different_forms(cells, first, second):
    rows = "".join(f"{cell};{i}\n" for i, cell in enumerate(cells))
    problem = problem_of(f"a;b\n{rows}")
    assert (problem.column, problem.code) == ("a", "forms")
    assert problem.remedies == ("same form", "drop")
    assert problem.what.endswith(f"{first} and {second}")


def test_long_text_is_cut():
    assert f"'{'y' * 40}...' in line 2" in problem_of(f"a,b\n1,{'y' * 5000}\n2,z\n").what


def test_text_that_looks_like_numbers_is_refused_too():
    raw = RawTable("t.npz", ("a",), (np.array([None, "7", "8"], dtype=object),), None, lambda j: [])
    with pytest.raises(TableError) as caught:
        prepare(raw, Choices())
    assert [problem.code for problem in caught.value.problems] == ["text", "missing"]
    assert caught.value.problems[0].what.endswith("'7' in row 2")


def test_two_texts_make_one_column():
    prepared = prepared_of("a\nyes\nno\nyes\n", categories="encode")
    assert prepared.columns == ("a=no",)
    assert prepared.values.tolist() == [[0.0], [1.0], [0.0]]
    assert prepared.notes == (Note.of("tables.encoded", "a", n_columns=1, texts="'no', 'yes'"),)


def test_columns_with_one_value_are_left_out():
    prepared = prepared_of("a,b,c\n5,red,1\n5,red,2\n,red,3\n")
    assert (prepared.columns, prepared.values.tolist()) == (("c",), [[1.0], [2.0], [3.0]])
    assert prepared.guesses == (
        Guess("a", "constant", "its only value is 5"),
        Guess("b", "constant", "its only text is 'red'"),
    )


@pytest.mark.parametrize("n_texts", [20, 21])
def test_many_texts(n_texts):
    rows = "".join(f"{j}.5,text{j:02}\n" for j in range(n_texts))
    text = f"a,b\n{rows}0,text00\n"
    if n_texts == 20:
        prepared = prepared_of(text, categories="encode")
        np.testing.assert_array_equal(prepared.values[:-1, 1:], np.eye(20)[:, 1:])
    else:
        problem = problem_of(text, categories="encode")
        assert (problem.column, problem.code, problem.remedies) == (
            *("b", "many texts"),
            ("drop", "id"),
        )
        assert "21 different" in problem.what


def test_an_encoded_name_that_already_exists():
    error = refusal('b,"b=y"\nx,1\nx,3\ny,2\n', categories="encode", use=("b",))
    assert [problem.code for problem in error.problems] == ["taken name"]


def test_encoding_is_not_offered_if_its_names_already_exist():
    text = "kind,kind=b\nb,1.5\nc,2.5\na,3.5\na,4\n"
    problem = problem_of(text)
    assert (problem.column, problem.code, problem.remedies) == (
        *("kind", "taken name"),
        ("drop", "rename"),
    )
    assert "'kind=b'" in problem.what
    assert prepared_of(text, drop=("kind",)).columns == ("kind=b",)
    assert problem_of(text, drop=("kind=b",)).remedies == ("encode", "drop")


@pytest.mark.parametrize("n_rows", [0, 1])
def test_two_rows_at_least(n_rows):
    raw = RawTable("t.npy", ("a",), (np.ones(n_rows),), None, lambda j: [])
    counted = ["0 rows", "1 row"][n_rows]
    with pytest.raises(TableError, match=rf"^t\.npy has {counted}\."):
        prepare(raw, Choices())


def test_no_column_is_left():
    assert "no column left" in refusal("a,b\n1,2\n3,4\n", id="a", drop=("b",)).what
    error = refusal("a,b\nx,\nx,\n", missing="impute", categories="encode")
    assert error.what == (
        "t.csv has no usable column. 'b': not used: all its values are missing; 'a': not used: its "
        "only text is 'x'"
    )
    error = refusal("a,b\nx,u\nx,u\ny,\n,v\n", missing="drop", categories="encode")
    assert "every column has only one text" in error.what


rows = st.lists(
    st.tuples(*[st.sampled_from(["", "1", "2.5", "-3"])] * 2, st.sampled_from(["", "x", "y", "z"])),
    min_size=2,
    max_size=12,
)


@given(rows, st.sampled_from(["drop", "impute"]))
def test_what_is_prepared_is_finite_and_its_rows_can_be_found_again(cells, missing):
    raw = raw_of("a,b,c\n" + "".join(f"{','.join(row)}\n" for row in cells))
    try:
        prepared = prepare(raw, Choices(missing=missing, categories="encode"))
    except TableError:
        return
    assert np.isfinite(prepared.values).all()
    n_rows = len(prepared.all_places)
    assert prepared.values.shape == (n_rows, len(prepared.columns))
    assert prepared.row_names == tuple(str(row + 1) for row in prepared.all_places)
    for name, values in zip(prepared.columns, prepared.values.T, strict=True):
        known = [(row, cells[row]["abc".index(name[0])]) for row in prepared.all_places]
        for value, (_, cell) in zip(values, known, strict=True):
            if cell or "=" in name:
                text = cell or "(missing)"
                assert value == (float(name == f"c={text}") if "=" in name else float(cell))


def test_new_rows_get_the_figures_of_the_training_rows():
    choices = {"missing": "impute", "categories": "encode", "id": "name", "truth": "label"}
    training = prepared_of(TABLE, drop=("weight",), **choices)
    new = raw_of("colour,extra,size,name\ngrey,1,,p\nred,2,100,q\n")
    prepared = training.preparation.apply(new)
    assert prepared.columns == training.columns
    assert prepared.values.tolist() == [[4.0, 0.0, 0.0], [100.0, 0.0, 0.0]]
    assert (prepared.ids, prepared.all_places.tolist(), prepared.truth) == (
        ("p", "q"),
        [0, 1],
        None,
    )
    unknown = Note.of("tables.unknown text", "colour", n_rows=1, texts="'grey'")
    assert unknown in prepared.notes
    assert prepared.notes == (
        Note.of("tables.added", "t.csv", columns="'extra'"),
        Note.of("tables.filled", "size", n_cells=1, value=4.0, is_new=True),
        unknown,
    )
    one = training.preparation.apply(raw_of("colour,size,weight,label\nred,1,,yes\n"))
    assert (one.row_names, one.truth) == (("1",), None)
    assert one.notes == (Note.of("tables.no id", "name"),)


def test_the_training_rows_as_new_rows_are_the_same():
    for missing in ("impute", "drop"):
        training = prepared_of(TABLE, id="name", missing=missing, categories="encode")
        again = training.preparation.apply(raw_of(TABLE))
        np.testing.assert_array_equal(again.values, training.values)
        assert again.ids == training.ids
        assert again.preparation is training.preparation


def test_texts_that_look_like_numbers_in_new_rows_are_texts():
    training = prepared_of("a,b\n1,7\n2,x\n3,8\n", categories="encode")
    prepared = training.preparation.apply(raw_of("a,b\n1,7\n2,8\n"))
    assert prepared.columns == ("a", "b=8", "b=x")
    assert prepared.values[:, 1:].tolist() == [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("c\n1\n", []),
        (
            "a,b,c\nx,inf,\n2,1,3\n",
            [
                ("a", "kind", ("correct",)),
                ("b", "infinite", ("correct",)),
                ("c", "missing", ("fill by hand", "fill and fit")),
            ],
        ),
    ],
)
def test_new_rows_that_are_refused(text, problems):
    preparation = prepared_of("a,b,c\n1,2,3\n4,5,6\n").preparation
    with pytest.raises(TableError) as caught:
        preparation.apply(raw_of(text))
    found = [(own.column, own.code, own.remedies) for own in caught.value.problems]
    assert found == problems
    if not problems:
        assert caught.value.what.endswith(": 'a', 'b'")


def test_new_rows_without_values_are_dropped_as_in_training():
    preparation = prepared_of("a,b\n1,2\n4,5\n", missing="drop").preparation
    prepared = preparation.apply(raw_of("a,b\n,2\n7,8\n"))
    assert (prepared.values.tolist(), prepared.all_places.tolist()) == ([[7.0, 8.0]], [1])
    with pytest.raises(TableError, match="0 rows without missing values"):
        preparation.apply(raw_of("a,b\n,2\n7,\n"))
    assert preparation.apply(raw_of("a,b\n,2\n7,\n"), n_least=0).values.shape == (0, 2)


def test_all_problems_are_listed_at_once():
    text = "a,b,c,d\n1,x,inf,\n,y,2,5\n3,,3,6\n"
    assert [(problem.column, problem.code) for problem in refusal(text).problems] == [
        ("a", "missing"),
        ("b", "text"),
        ("b", "missing"),
        ("c", "infinite"),
        ("d", "missing"),
    ]
    assert is_answered(raw_of(text), Choices())
    prepared = prepare(raw_of(text), Choices().with_strict(False))
    assert prepared.columns == ("a", "b=x", "b=y", "c", "d")


def test_a_file_that_no_option_helps_with():
    text = "a,b\ninf,inf\ninf,inf\n"
    assert not is_answered(raw_of(text), Choices(use=("a", "b")))


def test_the_message_about_many_problems_is_short():
    header = ",".join(f"{'column' * 6}{j}" for j in range(300))
    row = ",".join(["inf"] * 300)
    with pytest.raises(TableError) as caught:
        prepared_of(f"x,{header}\n1,{row}\n2,{row}\n")
    assert len(str(caught.value)) < 2000
    assert len(caught.value.problems) == 300
    assert re.search(r"; 2\d\d more\. Correct", str(caught.value))


def test_a_preparation_can_be_stored():
    preparation = prepared_of(TABLE, missing="impute", categories="encode").preparation
    reader = Reader(Form("test", 1, "preparation"), "test.json")
    data = json.loads(json.dumps(record_to_data(preparation)))
    assert reader.record(Preparation, "preparation", data) == preparation
    with pytest.raises(SavedFileError, match="missing must be one of"):
        reader.record(Preparation, "preparation", data | {"missing": "x"})


def three_rows(cell):
    """CSV text with the cell in two rows, and another of its form in the third."""
    return f"a,b\n{cell},1\n{cell},2\n{cell.replace('5', '6')},2\n"


TRAINED = "rate;price;x\n12,3 %;4.567;5,12\n9,1 %;7.250;6,3\n"


def test_new_rows_are_read_as_the_training_rows():
    preparation = prepared_of(TRAINED).preparation
    assert preparation.forms == (
        NumberForm(",", is_percent=True),
        NumberForm(",", is_certain=False),
        NumberForm(","),
    )
    prepared = preparation.apply(raw_of("rate;price;x\n17 %;2.183;4\n8 %;3.000;4.25\n"))
    assert prepared.values.tolist() == [[17.0, 2183.0, 4.0], [8.0, 3000.0, 4.25]]
    [note] = [note for note in prepared.notes if note.subject == "price"]
    assert note.code == "tables.assumed"


def test_new_rows_whose_points_are_decimals_as_in_the_training_rows():
    preparation = prepared_of("a;b\n1.5;2\n2.25;3\n").preparation
    prepared = preparation.apply(raw_of("a;b\n2.183;2,5\n3.104;3,5\n"))
    assert prepared.values.tolist() == [[2.183, 2.5], [3.104, 3.5]]
    [note] = [note for note in prepared.notes if note.subject == "a"]
    assert note.code == "tables.assumed"


def test_a_decimal_mark_far_below_decides():
    preparation = prepared_of(TRAINED).preparation
    rows = "".join(f"1 %;{n}.250;5\n" for n in range(1, 100))
    prepared = preparation.apply(raw_of(f"rate;price;x\n{rows}1 %;7.5;5\n"))
    assert prepared.values[[0, -1], 1].tolist() == [1.25, 7.5]
    assert not [note for note in prepared.notes if note.subject == "price"]


@pytest.mark.parametrize(
    ("trained", "new", "message"),
    [
        ("5 %", "0.05", "contain percents"),
        ("0.05", "5 %", "contains percents"),
        ("5 €", "$5", "amounts in $, but the training rows contain amounts in EUR"),
    ],
)
def test_new_rows_with_another_unit_are_refused(trained, new, message):
    preparation = prepared_of(three_rows(trained)).preparation
    with pytest.raises(TableError) as caught:
        preparation.apply(raw_of(f"a,b\n{new},1\n"))
    [problem] = caught.value.problems
    assert (problem.column, problem.code, problem.remedies) == ("a", "unit", ("as trained",))
    assert message in problem.what


@pytest.mark.parametrize(("trained", "new"), [("5 %", ""), ("5 €", "5"), ("5", "5 €")])
def test_new_rows_without_another_unit(trained, new):
    preparation = prepared_of(three_rows(trained), missing="impute").preparation
    assert preparation.apply(raw_of(f"a,b\n{new},1\n")).values.tolist() == [[5.0, 1.0]]


def test_forms_belong_to_the_columns_of_numbers():
    preparation = prepared_of(TRAINED).preparation
    with pytest.raises(ValueError, match="every column of numbers must have a form, or none"):
        replace(preparation, forms=preparation.forms[1:])


def test_the_labels_of_new_rows_are_not_read():
    """New rows are scored one by one or together, whatever their labels are."""
    prepared = prepared_of("a,t\n1,0\n2,1\n4,0\n", truth="t")
    for cells in ("1", "", "unknown"):
        new = prepared.preparation.apply(raw_of(f"a,t\n3,{cells}\n"))
        assert (new.values.tolist(), new.truth) == ([[3.0]], None)


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_a_mark_of_gaps_is_a_word_among_the_words_of_the_training_rows(missing):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "region": ["NA", "north", "NA"]})
    training = prepare(frame_table(frame), Choices(missing=missing, categories="encode"))
    again = training.preparation.apply(frame_table(frame[frame["region"] == "NA"]))
    assert again.values.tolist() == training.values[[0, 2]].tolist()
    gaps = frame_table(frame.assign(region=["NA", None, "north"]))
    if missing == "drop":
        (one, word), (_, other) = training.values[:2].tolist()
        assert training.preparation.apply(gaps).values.tolist() == [[one, word], [4.0, other]]
        return
    with pytest.raises(TableError) as caught:
        training.preparation.apply(gaps)
    assert [problem.code for problem in caught.value.problems] == ["missing"]
