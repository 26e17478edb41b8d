"""S20: columns that are missing, new, renamed, retired or not declared."""

import shutil
from dataclasses import replace

import pytest

from scd_pipeline.declaration import Attribute
from scd_pipeline.delta.warehouse import Warehouse
from scd_pipeline.errors import DeclarationError
from scd_pipeline.load.run import plan, record
from scd_pipeline.operations.check import check_table
from scd_pipeline_tests import oracle as o
from scd_pipeline_tests.semantics.declarations import CUSTOMER
from scd_pipeline_tests.semantics.engine import OwnTables, load_once, records
from scd_pipeline_tests.semantics.specification import (
    Case,
    by_files,
    case,
    declare,
    expected,
    feed,
    long_case,
    oracle_batch,
    requirement,
    rule,
    snapshots,
)
from scd_pipeline_tests.text_tables import assert_same_rows, header, same_rows

LAST_YEAR = declare(
    """
    dimension: dim_shop
    business_key: {id: int}
    sources:
      pos: {snapshot: {}}
    attributes:
      town: 2
      score: {scd: 2, type: int}
      email: 1
    """
)
THIS_YEAR = declare(
    """
    dimension: dim_shop
    business_key: {id: int}
    sources:
      pos: {snapshot: {}}
    attributes:
      city: {scd: 2, former_names: town}                   # renamed
      score: {scd: 2, type: int, retired: true}            # no longer provided
      email: {scd: 1, missing: not_provided}                      # may be missing
      tier: 2                                              # new
    """
)
LAST = snapshots(
    """
    | delivery | at         | id | town | score | email | colour | tier |
    | 1        | 2024-01-01 | 1  | Bonn | 1     | a     | red    | Iron |
    | 1        | 2024-01-01 | 2  | Ulm  | 2     | b     | blue   | Iron |
    """,
    source="pos",
)
LACKING = snapshots(
    """
    | delivery | at         | id | town | score |
    | 2        | 2024-02-01 | 1  | Kiel | 1     |
    """,
    source="pos",
)
THIS = snapshots(
    """
    | delivery | at         | id | city | score | tier |
    | 3        | 2024-03-01 | 1  | Bonn | 7     | Gold |
    | 3        | 2024-03-01 | 2  | Kiel | 7     | NULL |
    """,
    source="pos",
)


@pytest.mark.slow
@rule("S20")
def test_attributes_are_added_renamed_and_retired_by_the_declaration(own_tables: OwnTables) -> None:
    """A column tier that was delivered before it was declared is not read."""
    last, this = LAST_YEAR.dimension, THIS_YEAR.dimension
    result = own_tables.load(last, LAST, LACKING)
    assert_same_rows(
        """
        | batch_id         | outcome  | code           | undeclared     | missing |
        | pos/snapshot/1/1 | accepted | ''             | 'colour, tier' | ''      |
        | pos/snapshot/2/1 | rejected | COLUMN_MISSING | ''             | email   |
        """,
        [
            {
                "batch_id": batch.batch_id,
                "outcome": batch.outcome,
                "code": batch.code,
                "undeclared": ", ".join(batch.undeclared),
                "missing": batch.details.get("missing", ""),
            }
            for batch in result.results
        ],
    )
    assert "colour" not in own_tables.rows(last)[0]

    own_tables.load(this, THIS).raise_if_rejected()
    becomes = """
        | id | city | score | email | tier | effective_from | effective_to | load_run_id    |
        | 1  | Bonn | 1     | a     | NULL | 2024-01-01     | 2024-03-01   | pos/snapshot/1 |
        | 1  | Bonn | 1     | a     | Gold | 2024-03-01     | OPEN         | pos/snapshot/3 |
        | 2  | Ulm  | 2     | b     | NULL | 2024-01-01     | 2024-03-01   | pos/snapshot/1 |
        | 2  | Kiel | 2     | b     | NULL | 2024-03-01     | OPEN         | pos/snapshot/3 |
    """
    assert_same_rows(becomes, own_tables.rows(this))
    assert "town" not in own_tables.rows(this)[0]
    before, after = ([oracle_batch(b, d) for b in t.batches(d)] for t, d in ((LAST, last), (THIS, this)))
    assert_same_rows(becomes, o.oracle(THIS_YEAR.dim, [*before, *after]))

    with pytest.raises(DeclarationError) as error:
        plan(own_tables.warehouse, by_files(WITHOUT_EMAIL.dimension), [])
    assert [(e.code, e.field) for e in error.value.errors] == [("TABLE_HAS_ATTRIBUTE", "attributes.email")]


@pytest.mark.slow
@rule("S19", "S20")
def test_a_snapshot_from_before_a_rename_still_provides_the_renamed_attribute(own_tables: OwnTables) -> None:
    """After a late delivery, the values that it provided under the former name are in effect again."""
    last, this = LAST_YEAR.dimension, THIS_YEAR.dimension
    early = snapshots(
        """
        | delivery | at         | id | town | score | email |
        | 1        | 2024-01-01 | 1  | Bonn | 1     | a     |
        | 3        | 2024-03-01 | 1  | Bonn | 1     | a     |
        """,
        source="pos",
    )
    late = snapshots(
        """
        | delivery | at         | id | city | score | email | tier |
        | 2        | 2024-02-01 | 1  | Kiel | 1     | a     | Gold |
        """,
        source="pos",
    )
    own_tables.load(last, early).raise_if_rejected()
    own_tables.load(this, late).raise_if_rejected()
    becomes = """
        | id | city | effective_from | effective_to | load_run_id    |
        | 1  | Bonn | 2024-01-01     | 2024-02-01   | pos/snapshot/1 |
        | 1  | Kiel | 2024-02-01     | 2024-03-01   | pos/snapshot/2 |
        | 1  | Bonn | 2024-03-01     | OPEN         | pos/snapshot/3 |
    """
    assert_same_rows(becomes, own_tables.rows(this))
    before, after = ([oracle_batch(b, d) for b in t.batches(d)] for t, d in ((early, last), (late, this)))
    assert_same_rows(becomes, o.oracle(THIS_YEAR.dim, [*before, *after]))


WITHOUT_EMAIL = declare(
    """
    dimension: dim_shop
    business_key: {id: int}
    sources:
      pos: {snapshot: {}}
    attributes:
      city: {scd: 2, former_names: town}
      score: {scd: 2, type: int, retired: true}
      tier: 2
    """
)


YEARS = [
    declare(
        f"""
        dimension: dim_shop
        business_key: {{id: int}}
        sources: {{pos: {{snapshot: {{}}}}}}
        attributes: {{{named}}}
        """
    )
    for named in (
        "city: 2, rent: {scd: 6, type: int}",
        "town: {scd: 2, former_names: city}, cost: {scd: 6, type: int, former_names: rent}",
        "place: {scd: 2, former_names: town}, cost: {scd: 6, type: int}",
        "place: {scd: 2, former_names: [city, town]}, cost: {scd: 6, type: int, former_names: rent}",
    )
]
EACH_YEAR = (
    """
    | delivery | at         | id | city | rent |
    | 1        | 2024-01-01 | 1  | Bonn | 10   |
    | 4        | 2024-04-01 | 1  | Bonn | 10   |
    """,
    """
    | delivery | at         | id | town | cost |
    | 2        | 2024-02-01 | 1  | Kiel | 10   |
    """,
    """
    | delivery | at         | id | place | cost |
    | 3        | 2024-03-01 | 1  | Kiel  | 30   |
    """,
)


@pytest.mark.slow
@rule("S19", "S20")
def test_a_former_name_can_be_removed_once_the_column_is_renamed(own_tables: OwnTables) -> None:
    """Renamed twice, each time with the last name alone: the rows equal those with all former names declared."""
    first, second, third, complete = (year.dimension for year in YEARS)
    for dimension, table in zip((first, second, third), EACH_YEAR, strict=True):
        own_tables.load(dimension, snapshots(table, source="pos")).raise_if_rejected()
        record(own_tables.warehouse, by_files(dimension))
    becomes = """
        | id | place | cost | current_cost | effective_from | effective_to | load_run_id    |
        | 1  | Bonn  | 10   | 10           | 2024-01-01     | 2024-02-01   | pos/snapshot/1 |
        | 1  | Kiel  | 10   | 10           | 2024-02-01     | 2024-03-01   | pos/snapshot/2 |
        | 1  | Kiel  | 30   | 10           | 2024-03-01     | 2024-04-01   | pos/snapshot/3 |
        | 1  | Bonn  | 10   | 10           | 2024-04-01     | OPEN         | pos/snapshot/4 |
    """
    assert_same_rows(becomes, own_tables.rows(third))
    batches = [
        oracle_batch(batch, dimension)
        for dimension, table in zip((first, second, third), EACH_YEAR, strict=True)
        for batch in snapshots(table, source="pos").batches(dimension)
    ]
    assert_same_rows(becomes, o.oracle(YEARS[3].dim, batches))
    assert {result.passed for result in check_table(own_tables.warehouse, third)} == {True}
    assert plan(own_tables.warehouse, by_files(complete), []).schema_steps == ()

    other = Warehouse(own_tables.warehouse.spark, own_tables.files.parent / "other")
    renamed_table = EACH_YEAR[0].replace("city", "place").replace("rent", "cost") + "".join(
        table.replace("town ", "place").split("|\n", 1)[1] for table in EACH_YEAR[1:]
    )
    load_once(other, by_files(complete), own_tables.deliveries(complete, snapshots(renamed_table, source="pos")))
    assert not same_rows(own_tables.rows(third), records(other.table(third.name).read()))


@pytest.mark.slow
@requirement("H17")
@rule("S19", "S20")
def test_a_late_file_from_before_a_rename_is_read_by_the_former_name(own_tables: OwnTables) -> None:
    """Files of city arrive before and after two renames: the rows equal those in order of time, under one name."""
    first, _, _, complete = (year.dimension for year in YEARS)
    january, april = (
        f"""
        | delivery | at         | id | city | rent |
        | {month}        | 2024-0{month}-01 | 1  | Bonn | 10   |
        """
        for month in (1, 4)
    )
    february, march = EACH_YEAR[1:]
    own_tables.load(first, snapshots(january, source="pos")).raise_if_rejected()
    own_tables.load(complete, snapshots(march, source="pos")).raise_if_rejected()
    result = own_tables.load(complete, *(snapshots(table, source="pos") for table in (february, april)))
    assert [batch.outcome for batch in result.results] == ["accepted", "accepted"]
    rows = own_tables.rows(complete)
    assert_same_rows(
        """
        | id | place | cost | effective_from | effective_to | load_run_id    |
        | 1  | Bonn  | 10   | 2024-01-01     | 2024-02-01   | pos/snapshot/1 |
        | 1  | Kiel  | 10   | 2024-02-01     | 2024-03-01   | pos/snapshot/2 |
        | 1  | Kiel  | 30   | 2024-03-01     | 2024-04-01   | pos/snapshot/3 |
        | 1  | Bonn  | 10   | 2024-04-01     | OPEN         | pos/snapshot/4 |
        """,
        rows,
    )
    assert not {"city", "town", "rent"} & set(rows[0])


@pytest.mark.slow
@rule("S20")
def test_a_former_name_of_an_attribute_cannot_be_used_for_another(own_tables: OwnTables) -> None:
    """The records of that name in the log could be of either attribute."""
    before, after = (year.dimension for year in YEARS[:2])
    own_tables.load(before, snapshots(EACH_YEAR[0], source="pos")).raise_if_rejected()
    own_tables.load(after, snapshots(EACH_YEAR[1], source="pos")).raise_if_rejected()
    reused = replace(YEARS[2].dimension, attributes={"town": 2, "cost": Attribute(6, "int"), "city": Attribute(1)})
    with pytest.raises(DeclarationError) as error:
        plan(own_tables.warehouse, by_files(reused), [])
    assert [(e.code, e.field) for e in error.value.errors] == [("NAME_IN_USE", "attributes.city")]


@pytest.mark.slow
@rule("S20")
def test_change_records_of_an_undeclared_attribute_are_reported(own_tables: OwnTables) -> None:
    """The log alone shows it if the table that stores the former names does not exist."""
    before, after = (year.dimension for year in YEARS[1:3])
    own_tables.load(before, snapshots(EACH_YEAR[1], source="pos")).raise_if_rejected()
    shutil.rmtree(own_tables.warehouse.table(before.name).path or "")
    assert plan(own_tables.warehouse, by_files(after), []).row_counts == {"open": 1}
    unnamed = replace(after, attributes={"place": Attribute(2), "cost": Attribute(6, "int")})
    with pytest.raises(DeclarationError) as error:
        plan(own_tables.warehouse, by_files(unnamed), [])
    assert [(e.code, e.field) for e in error.value.errors] == [("TABLE_HAS_ATTRIBUTE", "attributes.town")]


@rule("S20")
@case
def test_an_optional_column_that_is_missing_is_not_provided() -> Case:
    """It is not NULL: the value from before stays in effect."""
    return Case(
        CUSTOMER,
        snapshots(
            """
            | delivery | at         | id | city | email |
            | 1        | 2024-01-01 | 1  | Bonn | a     |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | city |
            | 2        | 2024-02-01 | 1  | Kiel |
            """
        ),
        snapshots(
            """
            | delivery | at         | id | email |
            | 3        | 2024-03-01 | 1  | NULL  |
            """
        ),
        becomes="""
        | city | email | effective_from | effective_to |
        | Bonn | NULL  | 2024-01-01     | 2024-02-01   |
        | Kiel | NULL  | 2024-02-01     | OPEN         |
        """,
        on_page=True,
    )


BRANCH = declare(
    """
    dimension: dim_branch
    business_key: {id: int}
    sources:
      erp:
        existence: true
        snapshot: {}
        columns: {rent: cost}
      app: {feed: {effective_at: time}}
    attributes:
      place: {scd: 2, former_names: [town, city], source: erp}      # renamed twice: city, town, place
      rent: {scd: 2, type: int, former_names: fee, source: erp}
      phone: {scd: 1, former_names: tel, source: app}
    """
)


@requirement("H17")
@rule("S20")
@long_case
def test_a_late_delivery_provides_an_attribute_under_a_former_name() -> Case:
    """It opens no version. If it has the current name too, this one counts, and the former one is undeclared."""
    return Case(
        BRANCH,
        snapshots(
            """
            | delivery | at         | id | place | cost |
            | 3        | 2024-03-01 | 1  | Bonn  | 10   |
            """,
            "erp",
        ),
        snapshots(
            """
            | delivery | at         | id | city | fee |
            | 1        | 2024-01-01 | 1  | Bonn | 10  |
            """,
            "erp",
        ),
        snapshots(
            """
            | delivery | at         | id | town | cost | fee |
            | 2        | 2024-02-01 | 1  | Bonn | 10   | 99  |
            """,
            "erp",
        ),
        snapshots(
            """
            | delivery | at         | id | city | town | place | cost |
            | 4        | 2024-04-01 | 1  | Ulm  | Rome | Kiel  | 10   |
            """,
            "erp",
        ),
        feed(
            """
            | delivery | id | time       | tel |
            | 1        | 1  | 2024-03-15 | 11  |
            """,
            "app",
        ),
        becomes="""
        | place | rent | phone | effective_from | effective_to | load_run_id    |
        | Bonn  | 10   | '11'  | 2024-01-01     | 2024-04-01   | erp/snapshot/1 |
        | Kiel  | 10   | '11'  | 2024-04-01     | OPEN         | erp/snapshot/4 |
        """,
        results="""
        | batch            | outcome  | code | undeclared   |
        | erp/snapshot/3/1 | accepted | ''   | ''           |
        | erp/snapshot/1/1 | accepted | ''   | ''           |
        | erp/snapshot/2/1 | accepted | ''   | fee          |
        | erp/snapshot/4/1 | accepted | ''   | 'city, town' |
        | app/feed/1/1     | accepted | ''   | ''           |
        """,
    )


@requirement("F43", "X20")
@rule("S20")
@case
def test_undeclared_columns_are_reported_and_not_loaded() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | time       | city | shoe size | colour |
            | 1        | 1  | 2024-01-01 | Bonn | 44        | red    |
            """
        ),
        becomes="""
        | id | city |
        | 1  | Bonn |
        """,
        results="""
        | batch        | outcome  | code | undeclared          |
        | crm/feed/1/1 | accepted | ''   | 'colour, shoe size' |
        """,
    )


@rule("S20")
def test_a_column_is_found_by_its_name_with_underscores(own_tables: OwnTables) -> None:
    """Each of two amounts would be `Net_amount`, and the town has a column with its own name."""
    order = declare(
        """
        dimension: dim_order
        business_key: {Order_ID: int}
        sources:
          crm:
            feed: {effective_at: Ordered_at, deletes: Is_canceled = 'yes'}
            columns: {Double: {expression: CAST(2 * Unit_price AS INT)}}
        attributes:
          Unit_price: {scd: 2, type: int}
          Double: {scd: 2, type: int}
          Town: 2
          Net_amount: {scd: 2, missing: "null"}
        """
    ).dimension
    delivery = feed(
        """
        | delivery | Order ID | Ordered at | Unit.price | Town | Town; | Net (amount) | Net amount | Is canceled |
        | 1        | 1        | 2024-01-01 | 5          | Bonn | Ulm   | 7            | 8          | no          |
        | 1        | 2        | 2024-01-01 | 6          | Bonn | Ulm   | 7            | 8          | yes         |
        """
    )
    (batch,) = own_tables.load(order, delivery).results
    assert (batch.outcome, batch.undeclared) == ("accepted", ("Net (amount)", "Net amount", "Town;", "op"))
    becomes = """
        | Order_ID | Unit_price | Double | Town | Net_amount | effective_from |
        | 1        | 5          | 10     | Bonn | NULL       | 2024-01-01     |
    """
    assert_same_rows(expected(becomes), own_tables.rows(order), header(becomes))


@rule("S20")
@case
def test_columns_of_the_key_and_of_the_channel_are_required() -> Case:
    return Case(
        CUSTOMER,
        feed(
            """
            | delivery | id | city |
            | 1        | 1  | Bonn |
            """
        ),
        becomes="| id | city |",
        results="""
        | arrives | batch        | outcome  | code           |
        | 1       | crm/feed/1/1 | rejected | COLUMN_MISSING |
        """,
    )


@rule("S20")
def test_a_missing_column_that_an_expression_names_rejects_the_delivery(own_tables: OwnTables) -> None:
    """The delivery is rejected, and the run continues."""
    dimension = declare(
        """
        dimension: dim_signal
        business_key: id
        sources: {crm: {feed: {effective_at: time, deletes: "removed = 'yes'"}}}
        attributes: {city: 2}
        """
    ).dimension
    delivery = feed("| delivery | id | time | city |\n| 1 | 1 | 2024-01-01 | Bonn |")
    (batch,) = own_tables.load(dimension, delivery).results
    assert (batch.outcome, batch.code) == ("rejected", "COLUMN_MISSING")
    assert batch.details == {"missing": "removed (in `deletes`)", "existing": "city, id, op, time", "nested": ""}


OFFICE = declare(
    """
    dimension: dim_office
    business_key: {id: int}
    sources:
      list:
        snapshot: {}
        columns:
          phone: {expression: "trim(tel)"}
          rank: {expression: "upper(grade)"}
          town: [Town, "Town name"]                        # the first that a delivery has
    attributes:
      phone: {scd: 2, missing: not_provided}
      rank: {scd: 2, missing: null}
      fax: {scd: 1, missing: null}
      town: 2
      size: {scd: 1, type: int, on_bad_value: null}
    """
)


@pytest.mark.slow
@rule("S20", "S26")
def test_missing_columns_and_bad_values_are_handled_as_declared(own_tables: OwnTables) -> None:
    """Including columns that an expression names. A first NULL is not a change."""
    result = own_tables.load(
        OFFICE.dimension,
        snapshots(
            """
            | delivery | at         | id | Town | size |
            | 1        | 2024-01-01 | 1  | Bonn | 5    |
            | 1        | 2024-01-01 | 2  | Ulm  | 6    |
            | 1        | 2024-01-01 | 3  | Kiel | 7    |
            """,
            source="list",
        ),
        snapshots(
            """
            | delivery | at         | id | Town name | tel  | grade | fax  | size |
            | 2        | 2024-02-01 | 1  | Bonn      | 11   | a     | f    | 5    |
            | 2        | 2024-02-01 | 2  | Ulm       | NULL | NULL  | NULL | 6    |
            | 2        | 2024-02-01 | 3  | Kiel      | NULL | NULL  | NULL | x!   |
            """,
            source="list",
        ),
        snapshots(
            """
            | delivery | at         | id | Town | size | town name |
            | 3        | 2024-03-01 | 1  | Bonn | 5    | Rome      |
            | 3        | 2024-03-01 | 2  | Ulm  | 6    | Rome      |
            | 3        | 2024-03-01 | 3  | Kiel | NULL | Rome      |
            """,
            source="list",
        ),
        snapshots("| delivery | at | id | tel |\n| 4 | 2024-04-01 | 1 | 12 |", source="list"),
    )
    assert_same_rows(
        """
        | delivery | outcome  | changed | bad_rows | nulled_values | code            |
        | '1'      | accepted | 0       | 0        | 0             | ''              |
        | '2'      | accepted | 2       | 0        | 1             | ''              |
        | '3'      | accepted | 1       | 0        | 0             | ''              |
        | '4'      | rejected | 0       | 0        | 0             | COLUMN_MISSING  |
        """,
        [{name: getattr(b, name) for name in COUNTED} for b in result.results],
    )
    assert result.results[2].undeclared == ()
    assert_same_rows(
        """
        | id | town | phone | rank | fax  | size | effective_from | effective_to |
        | 1  | Bonn | NULL  | NULL | NULL | 5    | 2024-01-01     | 2024-02-01   |
        | 1  | Bonn | '11'  | A    | NULL | 5    | 2024-02-01     | 2024-03-01   |
        | 1  | Bonn | '11'  | NULL | NULL | 5    | 2024-03-01     | OPEN         |
        | 2  | Ulm  | NULL  | NULL | NULL | 6    | 2024-01-01     | OPEN         |
        | 3  | Kiel | NULL  | NULL | NULL | NULL | 2024-01-01     | OPEN         |
        """,
        own_tables.rows(OFFICE.dimension),
    )


COUNTED = ("delivery", "outcome", "changed", "bad_rows", "nulled_values", "code")
