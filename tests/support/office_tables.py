"""What offices keep in tables, in four languages, and how six countries write it.

Words in several languages stand in one string, "German|English|French|Swedish"; a string without a
bar is the same in all.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "APPROXIMATELY",
    "EMPTY",
    "FOOTERS",
    "GROUPS",
    "HOTLINE",
    "LABEL",
    "LEGEND",
    "LOCALES",
    "NOT_AVAILABLE",
    "OFFICES",
    "OTHER_SHEETS",
    "REMARKS",
    "SHEET",
    "SUBTOTAL",
    "TITLES",
    "TOTAL",
    "YES_NO",
    "Locale",
    "Number",
    "Office",
    "Text",
    "in_language",
]


def in_language(words: str, language: int) -> str:
    """The words in one of the four languages."""
    return words.split("|")[language] if "|" in words else words


@dataclass(frozen=True)
class Locale:
    """How a country writes numbers, money, dates and postcodes."""

    name: str
    language: int  # 0 German, 1 English, 2 French, 3 Swedish
    decimal: str
    thousands: tuple[str, ...]
    money: tuple[str, str]  # what stands before and after an amount
    currency: str
    date: str
    separators: tuple[str, ...]


NBSP, NARROW = "\u00a0", "\u202f"
LOCALES = (
    Locale("de", 0, ",", (".",), ("", " €"), "EUR", "%d.%m.%Y", (";", "\t", ";", "|", ",")),
    Locale("us", 1, ".", (",",), ("$", ""), "USD", "%m/%d/%Y", (",", "\t", ",", "|", ";")),
    Locale("fr", 2, ",", (NARROW, " ", NBSP), ("", " €"), "EUR", "%d/%m/%Y", (";", "|", ";", "\t")),
    Locale(
        "ch", 0, ".", ("'", "\u2019"), ("CHF ", ""), "CHF", "%d.%m.%Y", (";", ",", ";", "|", "\t")
    ),
    Locale("gb", 1, ".", (",",), ("£", ""), "GBP", "%d/%m/%Y", (",", "\t", ",", "|")),
    Locale("se", 3, ",", (" ", NBSP), ("", " kr"), "SEK", "%Y-%m-%d", (";", "\t", "|", ";")),
)


@dataclass(frozen=True)
class Number:
    """A column of numbers around a centre: normal, or log-normal with a spread of logarithms."""

    names: str
    centre: float
    spread: float
    digits: int = 0
    unit: str = ""  # "¤" is the currency of the country
    normal: bool = False


@dataclass(frozen=True)
class Text:
    """Any other column; its shape says how ids, codes and dates look."""

    kind: str  # category, date, id, code, remark
    names: str
    shape: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Office:
    """The columns of a table of one kind of office, and what the table is called."""

    title: str
    columns: tuple[Number | Text, ...]


REMARK = Text("remark", "Bemerkung|Remark|Remarque|Anmärkning")
REGION = ("Nord|North|Nord|Norr", "Süd|South|Sud|Syd", "Ost|East|Est|Öst", "West|West|Ouest|Väst")

OFFICES = {
    "accounting": Office(
        "Offene Posten|Open items|Factures ouvertes|Öppna poster",
        (
            Text("id", "Beleg-Nr.|Invoice no.|N° facture|Fakturanr", "RE-{:06d}"),
            Text("code", "Kreditor|Vendor account|Compte fournisseur|Leverantörskonto", "account"),
            Text("date", "Belegdatum|Invoice date|Date de facture|Fakturadatum"),
            Text("category", "Kostenstelle|Cost centre|Centre de coût|Kostnadsställe", "", REGION),
            Number("Betrag|Amount|Montant|Belopp", 850, 0.6, 2, "¤"),
            Number("Fracht|Freight|Frais de port|Frakt", 38, 0.4, 2, "¤"),
            Number("Menge|Quantity|Quantité|Antal", 720, 0.45, 0),
            Number("Skonto|Cash discount|Escompte|Kassarabatt", 4.5, 0.3, 1, "%"),
            REMARK,
        ),
    ),
    "crm": Office(
        "Kundenliste|Customer list|Liste des clients|Kundlista",
        (
            Text("id", "customer_id", "{:d}"),
            Text("code", "PLZ|ZIP code|Code postal|Postnummer", "postcode"),
            Text(
                "category",
                "Segment",
                "",
                (
                    "Privat|Private|Particulier|Privat",
                    "Firma|Business|Entreprise|Företag",
                    "Behörde|Public|Administration|Myndighet",
                ),
            ),
            Number("Umsatz|Revenue|Chiffre d'affaires|Omsättning", 910, 0.4, 0, "¤"),
            Number("Bestellungen|Orders|Commandes|Beställningar", 14, 0.4, 0),
            Number("Rabatt|Discount|Remise|Rabatt", 7.5, 0.35, 1, "%"),
            Number("Deckungsbeitrag|Margin|Marge|Täckningsbidrag", 60, 35, 2, "¤", normal=True),
            Text("date", "Letzter Kontakt|Last contact|Dernier contact|Senaste kontakt"),
            REMARK,
        ),
    ),
    "sensors": Office(
        "Messprotokoll|Sensor log|Relevé des capteurs|Mätprotokoll",
        (
            Text("date", "Zeitstempel|Timestamp|Horodatage|Tidpunkt", "time"),
            Text(
                "category",
                "Standort|Station|Station|Plats",
                "",
                (
                    "Halle 1|Hall 1|Atelier 1|Hall 1",
                    "Halle 2|Hall 2|Atelier 2|Hall 2",
                    "Dach|Roof|Toit|Tak",
                ),
            ),
            Number("Temperatur|Temperature|Température|Temperatur", 6, 5, 1, "°C", normal=True),
            Number("Luftdruck|Pressure|Pression|Lufttryck", 1009, 7, 1, "hPa", normal=True),
            Number("Feuchte|Humidity|Humidité|Fuktighet", 55, 6, 1, "%", normal=True),
            Number("Drehzahl|Speed|Vitesse de rotation|Varvtal", 1150, 0.25, 0, "rpm"),
            Number("Vibration", 0.8, 0.3, 3, "mm/s"),
        ),
    ),
    "hr": Office(
        "Personalstamm|Staff list|Liste du personnel|Personallista",
        (
            Text("id", "Personalnummer|Employee ID|Matricule|Anställningsnr", "{:06d}"),
            Text(
                "category",
                "Abteilung|Department|Service|Avdelning",
                "",
                (
                    "Einkauf|Purchasing|Achats|Inköp",
                    "Vertrieb|Sales|Ventes|Försäljning",
                    "Produktion|Production|Production|Produktion",
                    "Verwaltung|Administration|Administration|Administration",
                ),
            ),
            Text("code", "Geburtsjahr|Year of birth|Année de naissance|Födelseår", "year"),
            Text("date", "Eintritt|Hire date|Date d'entrée|Anställd sedan"),
            Number("Gehalt|Salary|Salaire|Lön", 3900, 0.25, 0, "¤"),
            Number(
                "Wochenstunden|Weekly hours|Heures par semaine|Veckotimmar", 37, 2, 2, "h", True
            ),
            Number("Krankheitstage|Sick days|Jours de maladie|Sjukdagar", 9, 0.45, 0),
            Number("Überstunden|Overtime balance|Heures sup.|Övertid", 8, 9, 1, "h", normal=True),
            REMARK,
        ),
    ),
    "laboratory": Office(
        "Prüfergebnisse|Test results|Résultats d'analyse|Provresultat",
        (
            Text("id", "Proben-ID|Sample ID|ID échantillon|Prov-ID", "P{:05d}"),
            Text("date", "Probendatum|Sampling date|Date de prélèvement|Provdatum"),
            Text("category", "Verfahren|Method|Méthode|Metod", "", ("HPLC", "ICP-MS", "GC", "UV")),
            Number("pH", 7.1, 0.3, 2, normal=True),
            Number("Leitfähigkeit|Conductivity|Conductivité|Konduktivitet", 870, 0.3, 0, "µS/cm"),
            Number("Nitrat|Nitrate|Nitrate|Nitrat", 11, 0.4, 1, "mg/l"),
            Number("Einwaage|Mass|Masse|Massa", 1.4, 0.2, 3, "g"),
            Text(
                "category", "Prüfer|Analyst|Analyste|Analytiker", "", ("MK", "ab", "J. Weiß", "LR")
            ),
            REMARK,
        ),
    ),
    "web": Office(
        "Zugriffe|Web log|Journal web|Webblogg",
        (
            Text("date", "Zeit|time|horodatage|tid", "time"),
            Text("id", "session_id", "{:08x}"),
            Text("category", "Land|country|pays|land", "", ("DE", "US", "FR", "CH", "SE", "GB")),
            Text("code", "status", "status"),
            Number("bytes", 980, 0.5, 0, "B"),
            Number("Dauer|duration|durée|svarstid", 85, 0.5, 1, "ms"),
            Number("Aufrufe|page_views|pages_vues|sidvisningar", 12, 0.5, 0),
        ),
    ),
    "survey": Office(
        "Umfrage|Survey|Enquête|Enkät",
        (
            Text("id", "Fragebogen-Nr.|Respondent|N° questionnaire|Enkätnr", "{:d}"),
            Text("category", "Region|Region|Région|Region", "", REGION),
            Number("Alter|Age|Âge|Ålder", 47, 8, 0, "", normal=True),
            Number("Einkommen|Household income|Revenu du ménage|Inkomst", 2600, 0.4, 0, "¤"),
            Number("Zufriedenheit|Satisfaction|Satisfaction|Nöjdhet", 6.8, 0.9, 1, "", normal=True),
            Number("Minuten|Minutes|Minutes|Minuter", 17, 0.35, 1, "min"),
            Text("code", "Postleitzahl|Postcode|Code postal|Postnr", "postcode"),
            REMARK,
        ),
    ),
    "inventory": Office(
        "Lagerbestand|Stock list|État des stocks|Lagersaldo",
        (
            Text("id", "Artikelnr.|Item no.|Réf. article|Artikelnr", "{:07d}"),
            Text("code", "EAN", "ean"),
            Text(
                "category",
                "Lagerort|Warehouse|Entrepôt|Lager",
                "",
                (
                    "Halle A|Bay A|Hall A|Hall A",
                    "Halle B|Bay B|Hall B|Hall B",
                    "Außen|Yard|Cour|Gård",
                ),
            ),
            Text(
                "category", "Größe|Size|Taille|Storlek", "mixed", ("S", "M", "L", "XL", "42", "44")
            ),
            Number("Bestand|Stock|Stock|Saldo", 940, 0.5, 0, "Stk.|pcs|pcs|st"),
            Number("Preis|Unit price|Prix unitaire|Styckpris", 24, 0.6, 2, "¤"),
            Number("Gewicht|Weight|Poids|Vikt", 12, 0.4, 1, "kg"),
            Text("date", "Letzte Bewegung|Last movement|Dernier mouvement|Senaste rörelse"),
            REMARK,
        ),
    ),
    "banking": Office(
        "Kontoumsätze|Account statement|Relevé de compte|Kontoutdrag",
        (
            Text("date", "Buchungstag|Booking date|Date d'opération|Bokföringsdag"),
            Text("code", "Gegenkonto|Counterparty account|Compte tiers|Motkonto", "bank"),
            Text(
                "category",
                "Buchungsart|Type|Type d'opération|Typ",
                "",
                (
                    "Überweisung|Transfer|Virement|Överföring",
                    "Lastschrift|Direct debit|Prélèvement|Autogiro",
                    "Karte|Card|Carte|Kort",
                ),
            ),
            Number("Betrag|Amount|Montant|Belopp", 45, 180, 2, "¤", normal=True),
            Number("Gebühr|Fee|Frais|Avgift", 2.4, 0.4, 2, "¤"),
            Number("Kurs|Exchange rate|Cours|Växelkurs", 1.085, 0.02, 4, normal=True),
            Number("Saldo|Balance|Solde|Saldo", 5200, 1400, 2, "¤", normal=True),
            REMARK,
        ),
    ),
    "health": Office(
        "Patientendaten|Patient data|Données patients|Patientdata",
        (
            Text("id", "Fallnummer|Case number|N° de dossier|Fallnummer", "{:08d}"),
            Text("category", "Geschlecht|Sex|Sexe|Kön", "", ("w|F|F|K", "m|M|H|M", "d|X|X|X")),
            Text("code", "Geburtsjahr|Birth year|Année de naissance|Födelseår", "year"),
            Text("date", "Aufnahme|Admission|Admission|Inskrivning"),
            Number("Gewicht|Weight|Poids|Vikt", 74, 0.16, 1, "kg"),
            Number("Größe|Height|Taille|Längd", 171, 8, 0, "cm", normal=True),
            Number("Puls|Pulse|Pouls|Puls", 76, 0.14, 0, "bpm"),
            Number("Leukozyten|Leukocytes|Leucocytes|Leukocyter", 6700, 0.3, 0, "/µl"),
            Number(
                "Temperatur|Temperature|Température|Temperatur", 36.9, 0.4, 1, "°C", normal=True
            ),
            REMARK,
        ),
    ),
}

HOTLINE = Office(
    "Telefondienst|Hotline|Assistance|Telefonsupport",
    (
        Text("id", "Ticket", "T-{:05d}"),
        Text("code", "Telefon|Phone|Téléphone|Telefon", "phone"),
        Text("category", "Team", "", REGION),
        Number("Anrufe Telefon|phone_calls|Appels téléphone|Telefon samtal", 41, 0.4, 0),
        Number("Seiten Fax|fax_pages|Pages fax|Fax sidor", 9, 0.5, 0),
        Number("Minuten|Minutes|Minutes|Minuter", 17, 0.35, 1, "min"),
        Number("Kosten|Cost|Coût|Kostnad", 130, 0.4, 2, "¤"),
        REMARK,
    ),
)
"""An office whose quantities have words for codes in their names; some of its files have another
table beside their table, and some are text under the name of a workbook."""

YES_NO = (
    ("ja|yes|oui|ja", "nein|no|non|nej"),
    ("Ja|Yes|Oui|Ja", "Nein|No|Non|Nej"),
    ("J|Y|O|J", "N"),
)
NOT_AVAILABLE = ("", "k. A.|n/a|n.c.|saknas", "-", "NULL", "n/a", "#N/A")
APPROXIMATELY = "ca. |approx |env. |ca "
EMPTY = "Reserve|Spare|Réserve|Reserv"
LABEL = "Auffällig?|Anomaly?|Anomalie ?|Avvikelse?"
LEGEND = (
    ("Kürzel|Key|Code|Kod", "Bedeutung|Meaning|Signification|Betydelse", "Satz|Rate|Taux|Sats"),
    ("A", "Anruf|Call|Appel|Samtal", 1),
    ("F", "Fax", 2),
    ("M", "E-Mail|Mail|Courriel|E-post", 3),
)
"""A small table beside another one."""
SHEET = "Tabelle1|Sheet1|Feuil1|Blad1"
SUBTOTAL = "Zwischensumme|Subtotal|Sous-total|Delsumma"
TOTAL = "Summe|Total|Total général|Totalt"
GROUPS = "Angaben|Details|Données|Uppgifter", "Werte|Figures|Valeurs|Värden"
REMARKS = (
    "eilig; bitte prüfen|urgent, please check|urgent, à vérifier|brådskande; kontrollera",
    "Rückfrage am Montag|call back on Monday|rappeler lundi|ring på måndag",
    "siehe Anhang|see attachment|voir annexe|se bilaga",
    '"alt"|"old"|« ancien »|"gammal"',
    "Wert ca. 20 % höher?|value about 20% higher?|valeur +20 % ?|värdet 20 % högre?",
)
TITLES = (
    "Stand: 31.12.2025|As of Dec 31, 2025|Situation au 31/12/2025|Per 2025-12-31",
    "Musterwerk GmbH, Mandant 100|Example Inc., client 100|Exemple SA, mandant 100|Exempel AB",
    "Erstellt von: MEIER|Created by: SMITH|Établi par : DUPONT|Skapad av: BERG",
)
FOOTERS = (
    "Quelle: SAP R/3, 03.01.2026|Source: SAP R/3, Jan 3, 2026|Source : SAP R/3|Källa: SAP R/3",
    "* vorläufige Werte|* preliminary values|* valeurs provisoires|* preliminära värden",
    "Seite 1 von 1|Page 1 of 1|Page 1 sur 1|Sida 1 av 1",
)
OTHER_SHEETS = "Deckblatt|Cover|Couverture|Omslag", "Daten|Data|Données|Data"
