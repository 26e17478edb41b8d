"""The declarations that most cases share, as a user writes them.

Their attributes are optional, so that a table has only the columns that it is about: a column that a table does
not have is not delivered, and its attribute is not provided (S20).
"""

from __future__ import annotations

from scd_pipeline_tests.semantics.specification import declare

CUSTOMER = declare(
    """
    dimension: dim_customer
    business_key: {id: int}
    sources:
      crm:
        snapshot: {}                       # its rows have the time of the delivery
        feed: {effective_at: time, sequence: seq, reason: reason, deletes: "op = 'D'"}
        bad_row_limit: 0.5
    attributes:
      born: {scd: 0, type: date, missing: not_provided}
      email: {scd: 1, missing: not_provided}
      city: {scd: 2, missing: not_provided}
      score: {scd: 2, type: int, missing: not_provided}
      manager: {scd: 3, missing: not_provided}
      tier: {scd: 6, previous: true, missing: not_provided}
    """
)

MEMBER = declare(
    """
    dimension: dim_member
    business_key: {id: int}
    sources:
      crm:
        feed: {effective_at: time, deletes: "op = 'D'"}
    attributes:
      city: {scd: 2, missing: not_provided}
    deleted_rows: new_version              # a delete opens a version
    """
)

ARTICLE = declare(
    """
    dimension: dim_article
    business_key: id
    sources:
      erp:
        snapshot: {}
        feed: {effective_at: time}
    attributes:
      price: {scd: 2, type: int}
    column_names: {version_state: version_state}      # what happened last to a version
    """
)

CONTRACT = declare(
    """
    dimension: dim_contract
    business_key: {id: int}
    sources:
      crm:
        existence: true
        snapshot: {effective_at: time, sequence: seq}      # its rows have their own times
        feed: {effective_at: time, sequence: seq, deletes: "op = 'D'"}
        bad_row_limit: 0.5
      erp:
        snapshot: {effective_at: time}
        feed: {effective_at: time}
    attributes:
      city: {scd: 2, source: crm, missing: not_provided}
      email: {scd: 1, source: crm, missing: not_provided}
      limit: {scd: 2, type: int, source: erp}
    """
)

ACCOUNT = declare(
    """
    dimension: dim_account
    business_key: {id: int}
    sources:
      crm:
        existence: true                    # it alone decides whether an account exists
        snapshot: {}
        feed: {effective_at: time, sequence: seq, deletes: "op = 'D'"}
      erp:
        feed: {effective_at: time, deletes: "op = 'D'", updates: partial, nulls: not_provided}
      desk:
        snapshot: {}
        feed: {effective_at: time, updates: partial}
    attributes:
      city: {scd: 2, source: crm, missing: not_provided}
      name: {scd: 1, source: crm, missing: not_provided}
      limit: {scd: 2, type: int, source: erp}
      owner: {scd: 1, source: erp}
      note: {scd: 2, source: desk, missing: not_provided}
      agent: {scd: 3, source: desk, missing: not_provided}
    """
)

STORE = declare(
    """
    dimension: dim_store
    business_key: {region: string, id: string}
    sources:
      pos:
        snapshot: {scope: region}          # a delivery covers some regions
        feed: {effective_at: time, deletes: "op = 'D'"}
        bad_row_limit: 0.5
    attributes:
      city: {scd: 2, missing: not_provided}
      staff: {scd: 1, type: int, missing: not_provided}
    """
)

PRODUCT = declare(
    """
    dimension: dim_product
    business_key: {id: int}
    sources:
      erp:
        snapshot: {}
        feed: {effective_at: time, deletes: "op = 'D'"}
        bad_row_limit: 1
    attributes:
      price: {scd: 2, type: "decimal(8,2)", missing: not_provided}
      title: {scd: 1, missing: not_provided}
    open_end: 2999-12-31
    begin: {at: 2000-01-01, for_first_changes_until: 2024-01-01}
    """
)

COUNTRY = declare(
    """
    dimension: dim_country
    business_key: {id: int}
    sources:
      iso:
        snapshot: {}
        feed: {deletes: "op = 'D'"}        # without row times: at the time of the delivery
    attributes:
      founded: {scd: 0, type: int, missing: not_provided}
      name: {scd: 1, missing: not_provided}
      capital: {scd: 3, missing: not_provided}
    deleted_at: true
    """
)

PARTNER = declare(
    """
    dimension: dim_partner
    business_key: {id: int}
    sources:
      sap:
        snapshot: {}
    attributes:
      name: 1
    deleted_rows: remove
    """
)

VENDOR = declare(
    """
    dimension: dim_vendor
    business_key: {id: int}
    sources:
      crm:
        snapshot: {deletes: "op = 'D'"}    # a soft delete: the row stays in the extract with a flag
        bad_row_limit: 0.5
    attributes:
      name: 2
      score: {scd: 1, type: int, missing: not_provided}
    """
)

SUBSCRIBER = declare(
    """
    dimension: dim_subscriber
    business_key: {id: int}
    sources:
      crm:
        existence: true
        snapshot: {effective_at: time}
        feed: {effective_at: time, deletes: "op = 'D'"}
      web:
        feed: {effective_at: time}
    attributes:
      plan: {scd: 2, source: crm}
      created: {scd: 0, type: timestamp, source: crm}
      signed_up: {scd: 1, type: date, source: web}
    begin: {column: created}               # the first version begins when the source created the entity
    """
)

VISITOR = declare(
    """
    dimension: dim_visitor
    business_key: {id: int}
    sources:
      crm: {existence: true, snapshot: {}}
      web: {feed: {effective_at: time}}
    attributes:
      plan: {scd: 2, source: crm}
      signed_up: {scd: 0, type: date, source: web}
    begin: {column: signed_up}
    """
)

SHOPPER = declare(
    """
    dimension: dim_shopper
    business_key: {id: int}
    sources:
      pos:
        snapshot: {scope: store}           # a delivery covers the shoppers of some stores
        feed: {effective_at: time, deletes: "op = 'D'", updates: partial}
        bad_row_limit: 0.5
    attributes:
      store: 2
      name: {scd: 1, missing: not_provided}
    """
)

READING = declare(
    """
    dimension: dim_reading
    business_key: whole_row                # each distinct row is an entity
    sources:
      erp:
        snapshot: {scope: day}
        feed: {effective_at: time, deletes: "op = 'D'"}
        bad_row_limit: 0.5
    attributes:
      day: {scd: 2, type: date}
      id: {scd: 2, type: int}
      name: {scd: 2}
    """
)

SENSOR = declare(
    """
    dimension: dim_sensor
    business_key: row_hash
    row_version: true                      # the source identifies versions of rows
    sources:
      erp:
        snapshot: {}
        bad_row_limit: 0.5
    attributes:
      id: {scd: 1, type: int}
      place: 1
      unit: 0
    """
)
